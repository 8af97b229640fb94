"""Which results of an aggregation leave it, in Spark's words; windows and keyed streams share them."""

from __future__ import annotations

from firesteel.errors import InvalidProgramError, shorten

__all__ = ["APPEND", "COMPLETE", "UPDATE", "check_output_mode"]

APPEND, UPDATE, COMPLETE = _ALL = ("append", "update", "complete")


def check_output_mode(mode: str) -> str:
    if mode not in _ALL:
        raise InvalidProgramError(
            f"output_mode expects one of {', '.join(_ALL)}, but got {shorten(mode)}."
        )
    return mode
