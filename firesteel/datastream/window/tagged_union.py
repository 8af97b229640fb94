"""A record of one of two streams, as assigners, triggers and evictors of a join see it."""

from __future__ import annotations

from typing import Any, NamedTuple


class TaggedUnion(NamedTuple):
    """``side`` is 0 for the first stream and 1 for the second. Not in PyFlink.

    >>> TaggedUnion.one("order").is_one(), TaggedUnion.two("payment").get_two()
    (True, 'payment')
    """

    side: int
    value: Any

    @staticmethod
    def one(value: Any) -> TaggedUnion:
        return TaggedUnion(0, value)

    @staticmethod
    def two(value: Any) -> TaggedUnion:
        return TaggedUnion(1, value)

    def is_one(self) -> bool:
        return self.side == 0

    def is_two(self) -> bool:
        return self.side == 1

    def get_one(self) -> Any:
        """The record of the first stream, or None."""
        return self.value if self.side == 0 else None

    def get_two(self) -> Any:
        """The record of the second stream, or None."""
        return self.value if self.side == 1 else None
