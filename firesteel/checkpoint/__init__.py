"""Checkpoints and savepoints: rules, storage, and savepoints as data."""
