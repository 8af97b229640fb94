"""Checkpoints and savepoints: when they are taken, what is in them, where they lie, how a job comes back."""
