"""Benchmarks of Firesteel and its references. See `python -m benchmarks --help`."""
