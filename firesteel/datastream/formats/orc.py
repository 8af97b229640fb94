"""ORC files, under PyFlink's import path."""

from firesteel.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat

__all__ = ["OrcBulkWriters", "OrcColumnarRowInputFormat"]
