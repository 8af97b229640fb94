"""Top N per window: the two pages with the most clicks in the last minute, every 30 seconds.

Sliding windows count the clicks per page. They keep only counts, not clicks. A second window
collects the counts of all pages and selects the largest.

Output:
    until 00:30  home 2, search 1
    until 01:00  home 3, cart 2
    until 01:30  cart 4, home 1
    until 02:00  cart 2
"""

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream import (
    AggregateFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.functions import ProcessAllWindowFunction
from firesteel.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows

# (page, second)
CLICKS = [
    ("home", 1),
    ("search", 5),
    ("home", 9),
    ("home", 31),
    ("cart", 45),
    ("cart", 38),
    ("cart", 62),
    ("cart", 61),
]


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class WithPage(ProcessWindowFunction):
    def process(self, key, context, elements):
        (count,) = elements
        yield key, count


class Top(ProcessAllWindowFunction):
    def __init__(self, size):
        self._size = size

    def process(self, context, elements):
        largest = sorted(elements, key=lambda pair: (-pair[1], pair[0]))[: self._size]
        minutes, seconds = divmod(context.window().end // 1000, 60)
        pages = ", ".join(f"{page} {count}" for page, count in largest)
        yield f"until {minutes:02}:{seconds:02}  {pages}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    by_time = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(10))
    by_time = by_time.with_timestamp_assigner(lambda click, _: click[1] * 1000)
    counts = (
        env.from_collection(CLICKS)
        .assign_timestamps_and_watermarks(by_time)
        .key_by(lambda click: click[0])
        .window(SlidingEventTimeWindows.of(Time.minutes(1), Time.seconds(30)))
        .aggregate(Count(), WithPage())
    )
    # The timestamp of a result is the last moment of its window. Results of one window therefore
    # fall into one window again.
    counts.window_all(TumblingEventTimeWindows.of(Time.seconds(30))).process(Top(2)).print()

    env.execute("top pages")


if __name__ == "__main__":
    main()
