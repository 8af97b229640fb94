"""What runs in a slot. Nothing here knows Spark: a slot turns rows into rows."""
