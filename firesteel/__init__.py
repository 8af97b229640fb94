"""Flink's programming model on Apache Spark."""

from firesteel.version import __version__

__all__ = ["__version__"]
