"""Wiring for this repository's own test runs."""

pytest_plugins = ["pytester"]
