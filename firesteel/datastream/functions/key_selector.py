"""Says which key a record belongs to."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from firesteel.datastream.functions.base import Function


class KeySelector(Function):
    """Takes the key from a record.

    A key must hash alike in every process: numbers, text, bytes, dates and times, None, and tuples
    and rows of these.

    >>> class First(KeySelector):
    ...     def get_key(self, value):
    ...         return value[0]
    >>> First().get_key(("a", 1))
    'a'
    """

    @abstractmethod
    def get_key(self, value: Any) -> Any: ...
