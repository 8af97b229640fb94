"""Storage of checkpoints: metadata, segments, and the directory of a job."""
