"""A flat map over two connected streams."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.base import Function


class CoFlatMapFunction(Function):
    """Turns each record of either stream into any number of the common output."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """A record of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """A record of the second stream."""
