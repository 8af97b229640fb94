"""Query 19, auction top 10: the ten highest bids of each auction."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from benchmarks.nexmark.events import bids
from firesteel.common import Types
from firesteel.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from firesteel.datastream.state import ValueStateDescriptor

_SIZE = 10


class Top(KeyedProcessFunction):
    """Takes (auction, price, time, bidder). Emits (auction, rank, price, time, bidder) for ranks that change."""

    def open(self, runtime_context: RuntimeContext) -> None:
        pickled = Types.PICKLED_BYTE_ARRAY()
        self._top = runtime_context.get_state(ValueStateDescriptor("top", pickled))

    def process_element(self, value: tuple[int, ...], ctx: Any) -> Iterator[tuple[int, ...]]:
        auction, price, time, bidder = value
        # Sorted: the highest price first, of equal prices the earliest bid.
        top = self._top.value() or []
        entry = (-price, time, bidder)
        place = bisect_left(top, entry)
        if place >= _SIZE:
            return
        top.insert(place, entry)
        del top[_SIZE:]
        self._top.update(top)
        for rank in range(place, len(top)):
            negative_price, when, who = top[rank]
            yield auction, rank + 1, -negative_price, when, who


def query(events: DataStream) -> DataStream:
    return (
        bids(events)
        .map(lambda bid: (bid["auction"], bid["price"], bid["dateTime"], bid["bidder"]))
        .key_by(lambda bid: bid[0])
        .process(Top())
    )


def key(result: tuple[Any, ...]) -> Any:
    """A later result replaces an earlier one of the same auction and rank."""
    return result[:2]
