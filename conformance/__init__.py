"""Conformance with published evidence that stays outside the project."""
