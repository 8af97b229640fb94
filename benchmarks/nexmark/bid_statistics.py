"""Statistics of bids with distinct counts, for queries 15, 16 and 17."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.common import Types
from firesteel.datastream import KeyedProcessFunction, RuntimeContext
from firesteel.datastream.state import MapStateDescriptor, ValueStateDescriptor

DAY_MILLIS = 86_400_000
_MINUTE_MILLIS = 60_000

# Bids below the first bound are of rank 1, those below the second one of rank 2, others of rank 3.
_BOUNDS = (10_000, 1_000_000)
# The places of the counts: of bids, bidders and auctions, each of all ranks and of ranks 1 to 3.
_BIDS, _BIDDERS, _AUCTIONS, _END = 0, 4, 8, 12


def rank(price: int) -> int:
    """Return the rank of a price: 1, 2 or 3."""
    return 1 + (price >= _BOUNDS[0]) + (price >= _BOUNDS[1])


class Statistics(KeyedProcessFunction):
    """Counts bids, different bidders and different auctions: all of them, and those of each rank.

    A result is the key, the last minute of the day with a bid, and the counts of bids, of bidders
    and of auctions. Each count has four numbers: of all bids, and of the three ranks.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        pickled = Types.PICKLED_BYTE_ARRAY()
        self._counts = runtime_context.get_state(ValueStateDescriptor("counts", pickled))
        # Bidders and auctions that have been counted, by the place of their count.
        self._seen = runtime_context.get_map_state(
            MapStateDescriptor("seen", pickled, Types.BOOLEAN())
        )

    def process_element(self, value: dict[str, Any], ctx: Any) -> Iterator[tuple[Any, ...]]:
        minute, *counts = self._counts.value() or [0] * (1 + _END)
        minute = max(minute, value["dateTime"] % DAY_MILLIS // _MINUTE_MILLIS)
        seen = self._seen
        for column in (0, rank(value["price"])):
            counts[_BIDS + column] += 1
            for place, one in ((_BIDDERS, value["bidder"]), (_AUCTIONS, value["auction"])):
                if not seen.contains((place + column, one)):
                    seen.put((place + column, one), True)
                    counts[place + column] += 1
        self._counts.update((minute, *counts))
        yield (
            ctx.get_current_key(),
            f"{minute // 60:02d}:{minute % 60:02d}",
            tuple(counts[_BIDS:_BIDDERS]),
            tuple(counts[_BIDDERS:_AUCTIONS]),
            tuple(counts[_AUCTIONS:_END]),
        )
