"""Slots and everything that runs in them. Nothing here knows Spark: a slot turns rows into rows."""
