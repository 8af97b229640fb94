"""Copies of accumulators and results that share nothing, not even inside a tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel import pickling
from firesteel.task.copies import copy_of, is_immutable


def is_plain(value: Any) -> bool:
    """Whether nothing in the value can be changed."""
    if isinstance(value, tuple):
        return all(map(is_plain, value))
    return is_immutable(value)


def deep_copy_of(value: Any) -> Any:
    if isinstance(value, tuple):
        return value if is_plain(value) else pickling.loads(pickling.dumps(value))
    return copy_of(value)


def copying_get(get: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A table's ``base.get`` whose values may be changed in place."""

    def copied(key: Any, default: Any) -> Any:
        value = get(key, default)
        return value if value is default else deep_copy_of(value)

    return copied
