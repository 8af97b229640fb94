"""Triggers, one a file."""
