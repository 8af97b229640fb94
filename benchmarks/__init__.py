"""Firesteel measured beside its references: `python -m benchmarks --help`."""
