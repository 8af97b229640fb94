"""Evictors, one a file. PyFlink has none; these are Java's."""
