"""NumberSequenceSource, under PyFlink's import path."""

from firesteel.connectors.number_sequence import NumberSequenceSource

__all__ = ["NumberSequenceSource"]
