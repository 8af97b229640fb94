"""Streams of changes: their net result, and a check that each change fits the ones before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from firesteel.common.types import Row, RowKind

_ADDED = (RowKind.INSERT, RowKind.UPDATE_AFTER)


def fold(changes: Iterable[Row]) -> Counter[Any]:
    """The table that the changes make. Nothing is taken back that is not there."""
    table: Counter[Any] = Counter()
    expected = None
    for change in changes:
        kind = change.get_row_kind()
        if expected is not None or kind is RowKind.UPDATE_AFTER:
            assert kind is expected, "an update is -U and then +U"
        expected = RowKind.UPDATE_AFTER if kind is RowKind.UPDATE_BEFORE else None
        row = tuple(change)
        table[row] += 1 if kind in _ADDED else -1
        assert table[row] >= 0, f"{row} was taken back, but is not there"
    assert expected is None
    return +table


def described(changes: Iterable[Row]) -> list[str]:
    return [f"{c.get_row_kind()} {', '.join(map(str, c))}" for c in changes]
