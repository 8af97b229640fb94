"""Copies of accumulators and results that share nothing, not even inside a tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel import pickling
from firesteel.task.copies import copy_of, is_immutable

# Most accumulators are one of these, or tuples of them.
_SCALARS = frozenset({bool, bytes, float, int, str, type(None)})


def is_plain(value: Any) -> bool:
    """Whether nothing in the value can be changed."""
    if isinstance(value, tuple):
        return _SCALARS.issuperset(map(type, value)) or all(map(is_plain, value))
    return is_immutable(value)


def deep_copy_of(value: Any) -> Any:
    if isinstance(value, tuple):
        return value if is_plain(value) else pickling.loads(pickling.dumps(value))
    return copy_of(value)


def are_scalars(values: list[Any]) -> bool:
    """Whether nothing in any of them can be changed, as far as can be seen at once."""
    return _SCALARS.issuperset(map(type, values))


def deep_copies_of(values: list[Any]) -> list[Any]:
    return values[:] if are_scalars(values) else list(map(deep_copy_of, values))


def copying_get(get: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A table's ``base.get`` whose values may be changed in place."""

    def copied(key: Any, default: Any) -> Any:
        value = get(key, default)
        return value if value is default else deep_copy_of(value)

    return copied
