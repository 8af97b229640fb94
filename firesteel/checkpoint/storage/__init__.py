"""Checkpoints on disk: metadata, segments, and the directory of a job."""
