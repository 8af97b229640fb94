"""Data types of PyFlink's table package, which the file formats of streams take."""

from firesteel.table.types import DataTypes

__all__ = ["DataTypes"]
