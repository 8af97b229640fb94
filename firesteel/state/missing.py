"""The mark for "no value", for tables in which None is a value."""

from __future__ import annotations

from itertools import repeat
from operator import is_
from typing import Any, Final, Self


class Missing:
    """Marks a key without a value; in an overlay, a key that was deleted. One object per process."""

    _instance: Self | None = None

    def __new__(cls) -> Self:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __reduce__(self) -> tuple[type[Missing], tuple[()]]:
        return (Missing, ())

    def __repr__(self) -> str:
        return "<missing>"


MISSING: Final = Missing()


def has_missing(entries: dict[Any, Any]) -> bool:
    """Whether any value is MISSING; values are not asked whether they equal it."""
    return any(map(is_, entries.values(), repeat(MISSING)))
