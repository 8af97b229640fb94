"""Query 5, hot items: the auctions with the most bids in the last 10 seconds, every 2 seconds."""

from benchmarks.nexmark.aggregates import Count, Highest, WithWindow
from benchmarks.nexmark.events import bids, in_event_time
from firesteel.common import Time
from firesteel.datastream import DataStream
from firesteel.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows


def query(events: DataStream) -> DataStream:
    counts = (
        in_event_time(bids(events))
        .key_by(lambda bid: bid["auction"])
        .window(SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(2)))
        .aggregate(Count(), WithWindow())
    )
    # The results of one window have the same timestamp, so they meet in a window again.
    hottest = (
        counts.key_by(lambda count: count[3])
        .window(TumblingEventTimeWindows.of(Time.seconds(2)))
        .aggregate(Highest(1))
    )
    return hottest.flat_map(lambda counts: [(auction, n, end) for auction, n, _, end in counts])
