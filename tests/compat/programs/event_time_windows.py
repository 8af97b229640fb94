"""Timestamps, watermarks and windows: tumbling, session and count windows of the same clicks.

Output, in any order:
    tumbling> ann [0, 10): 2
    tumbling> ben [0, 10): 1
    tumbling> ann [10, 20): 1
    tumbling> ann [20, 30): 1
    session> ann [3, 17): 1,2,4
    session> ann [28, 33): 8
    session> ben [4, 9): 16
    count> (ann,3)
    count> (ann,12)
"""

from firesteel.common import Duration, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    AggregateFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from firesteel.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows

CLICKS = [("ann", 1, 3), ("ann", 2, 7), ("ben", 16, 4), ("ann", 4, 12), ("ann", 8, 28)]


class ClickTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Describe(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        (count,) = elements
        yield f"{key} [{window.start}, {window.end}): {count}"


class List(WindowFunction):
    def apply(self, key, window, inputs):
        values = ",".join(sorted(str(value) for _, value, _ in inputs))
        return [f"{key} [{window.start}, {window.end}): {values}"]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(5)
    ).with_timestamp_assigner(ClickTime())
    clicks = env.from_collection(
        CLICKS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
    ).assign_timestamps_and_watermarks(strategy)
    by_user = clicks.key_by(lambda click: click[0], key_type=Types.STRING())

    by_user.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).aggregate(
        Count(), Describe(), output_type=Types.STRING()
    ).print("tumbling")
    by_user.window(EventTimeSessionWindows.with_gap(Time.milliseconds(5))).apply(
        List(), Types.STRING()
    ).print("session")
    by_user.count_window(2).reduce(lambda a, b: (a[0], a[1] + b[1], 0)).map(
        lambda click: (click[0], click[1]), Types.TUPLE([Types.STRING(), Types.LONG()])
    ).print("count")
    env.execute("windows")


if __name__ == "__main__":
    main()
