"""The archives of the corpus are read by its tests alone, with the gates that belong to them."""

collect_ignore = ["archives", "evidence", "project"]
