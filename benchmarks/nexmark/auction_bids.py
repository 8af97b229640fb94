"""The join of auctions with the bids that come while they are open, for queries 4 and 9."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.nexmark.events import auctions, bids
from firesteel.common import Types
from firesteel.datastream import DataStream, KeyedCoProcessFunction, RuntimeContext
from firesteel.datastream.state import ListStateDescriptor, ValueStateDescriptor

Auction = dict[str, Any]
Bid = dict[str, Any]


class BestBid(KeyedCoProcessFunction):
    """Emits an auction with its best bid so far, whenever that changes.

    The best bid has the highest price. Of equal ones it is the earliest. A bid may arrive before its auction.
    A result is the auction, the new best bid, and the previous one or None.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        pickled = Types.PICKLED_BYTE_ARRAY()
        self._auction = runtime_context.get_state(ValueStateDescriptor("auction", pickled))
        self._best = runtime_context.get_state(ValueStateDescriptor("best", pickled))
        self._early = runtime_context.get_list_state(ListStateDescriptor("early", pickled))

    def process_element1(
        self, value: Auction, ctx: Any
    ) -> Iterator[tuple[Auction, Bid, Bid | None]]:
        self._auction.update(value)
        best = None
        for bid in self._early.get() or ():
            if is_valid(value, bid) and (best is None or is_better(bid, best)):
                best = bid
        self._early.clear()
        if best is not None:
            self._best.update(best)
            yield value, best, None

    def process_element2(self, value: Bid, ctx: Any) -> Iterator[tuple[Auction, Bid, Bid | None]]:
        auction = self._auction.value()
        if auction is None:
            self._early.add(value)
            return
        if not is_valid(auction, value):
            return
        best = self._best.value()
        if best is None or is_better(value, best):
            self._best.update(value)
            yield auction, value, best


def is_valid(auction: Auction, bid: Bid) -> bool:
    return bool(auction["dateTime"] <= bid["dateTime"] <= auction["expires"])


def is_better(bid: Bid, best: Bid) -> bool:
    if bid["price"] != best["price"]:
        return bool(bid["price"] > best["price"])
    return bool((bid["dateTime"], bid["bidder"]) < (best["dateTime"], best["bidder"]))


def best_bids(events: DataStream) -> DataStream:
    """Return the changes of the best bids of all auctions."""
    by_id = auctions(events).key_by(lambda auction: auction["id"])
    by_auction = bids(events).key_by(lambda bid: bid["auction"])
    return by_id.connect(by_auction).process(BestBid())
