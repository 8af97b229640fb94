"""Resident processes that slots live in, and the connection of Spark tasks to them."""
