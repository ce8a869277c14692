"""Token rows on disk: readers, writers, importers."""
