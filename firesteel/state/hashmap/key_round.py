"""A round through the keys of a table that changes meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any


class KeyRound:
    """Each round goes through the keys that there were at its beginning."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: Iterator[Any] = iter(())

    def next_keys(self, keys: Iterable[Any], limit: int) -> list[Any]:
        """Up to ``limit`` keys; the end of a round may give fewer."""
        found = list(islice(self._keys, limit))
        if not found:
            self._keys = iter(list(keys))
            found = list(islice(self._keys, limit))
        return found
