"""Flink's programming model on Apache Spark."""

from firesteel.gaps import install_finder
from firesteel.version import __version__

__all__ = ["__version__"]

install_finder()
