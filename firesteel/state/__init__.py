"""Keyed and operator state: key groups, backends, and the segments that record changes."""
