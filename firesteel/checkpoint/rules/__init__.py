"""Decisions about checkpoints. Pure: no I/O, no threads, no clock."""
