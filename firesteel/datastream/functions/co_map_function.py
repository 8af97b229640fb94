"""A map over two connected streams."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from firesteel.datastream.functions.base import Function


class CoMapFunction(Function):
    """Turns each record of either stream into one of the common output.

    A result of None is no result.
    """

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """A record of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """A record of the second stream."""
