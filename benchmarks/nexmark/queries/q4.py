"""Query 4, average price for a category: over the best bids of all auctions."""

from collections.abc import Iterator
from typing import Any

from benchmarks.nexmark.auction_bids import best_bids
from firesteel.common import Types
from firesteel.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from firesteel.datastream.state import ValueStateDescriptor


class Average(KeyedProcessFunction):
    """Takes (category, new best price, previous one or None). Emits (category, average)."""

    def open(self, runtime_context: RuntimeContext) -> None:
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        self._total = runtime_context.get_state(ValueStateDescriptor("sum and count", pair))

    def process_element(self, value: Any, ctx: Any) -> Iterator[tuple[int, int]]:
        category, price, previous = value
        total, count = self._total.value() or (0, 0)
        if previous is None:
            count += 1
            previous = 0
        total += price - previous
        self._total.update((total, count))
        yield category, total // count


def query(events: DataStream) -> DataStream:
    prices = best_bids(events).map(
        lambda change: (
            change[0]["category"],
            change[1]["price"],
            change[2] and change[2]["price"],
        )
    )
    return prices.key_by(lambda change: change[0]).process(Average())


def key(result: tuple[int, int]) -> int:
    """A later result replaces an earlier one of the same category."""
    return result[0]
