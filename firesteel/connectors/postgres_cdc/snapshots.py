"""Snapshots of transactions: the changes that a read of a table has already seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

__all__ = ["TransactionSnapshot"]


@dataclass(frozen=True)
class TransactionSnapshot:
    """A snapshot in PostgreSQL's text form, ``xmin:xmax:running,...``.

    >>> snapshot = TransactionSnapshot("10:20:12,15")
    >>> [number for number in range(9, 22) if not snapshot.contains(number)]
    [12, 15, 20, 21]
    """

    text: str

    @cached_property
    def _parts(self) -> tuple[int, int, frozenset[int]]:
        first, end, running = self.text.split(":")
        return int(first), int(end), frozenset(map(int, filter(None, running.split(","))))

    def contains(self, transaction: int) -> bool:
        """Return True if the snapshot sees a committed transaction.

        Args:
            transaction: The lower 32 bits of its number.
        """
        first, end, running = self._parts
        # The 64-bit number that is nearest to the snapshot.
        number = (end & ~0xFFFFFFFF) | transaction
        if number > end + 2**31:
            number -= 2**32
        elif number < end - 2**31:
            number += 2**32
        return number < first or (number < end and number not in running)
