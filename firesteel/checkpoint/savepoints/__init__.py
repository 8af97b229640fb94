"""Savepoints: writing, reading, describing and changing them."""
