"""Decisions about checkpoints. They are pure: no I/O, no threads, no clock."""
