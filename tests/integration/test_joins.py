"""Every kind of join once on Spark, with several sources and subtasks."""

from __future__ import annotations

from collections import Counter
from typing import Any

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream import DataStream, ProcessJoinFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.task.changes import fold

_RECORDS = 1_200
_KEYS = 7


def _numbers(env: StreamExecutionEnvironment, name: str, step: int) -> DataStream:
    """Records (key, number) at ten milliseconds times the number."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(50)
    ).with_timestamp_assigner(lambda number, _: number * 10)
    source = env.from_source(NumberSequenceSource(0, _RECORDS - 1), strategy, name)
    return source.filter(lambda number: number % step == 0).map(lambda n: (n % _KEYS, n))


def _key(record: Any) -> Any:
    return record[0]


class Pair(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        yield "interval", left[1], right[1]


def test_joins_within_windows_and_intervals(env: StreamExecutionEnvironment) -> None:
    left, right = _numbers(env, "left", 2), _numbers(env, "right", 3)
    joined = left.join(right).where(_key).equal_to(_key)
    grouped = left.co_group(right).where(_key).equal_to(_key)
    results = (
        joined.window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .apply(lambda a, b: ("tumbling", a[1], b[1]))
        .union(
            joined.window(SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(1))).apply(
                lambda a, b: ("sliding", a[1], b[1])
            ),
            grouped.window(EventTimeSessionWindows.with_gap(Time.seconds(5))).apply(
                lambda a, b: [("session", len(a), len(b))]
            ),
            left.key_by(_key)
            .interval_join(right.key_by(_key))
            .between(Time.milliseconds(-200), Time.milliseconds(300))
            .process(Pair()),
        )
    )
    with results.execute_and_collect("joins") as collected:
        found = Counter(collected)

    expected: Counter[Any] = Counter()
    sides = [range(0, _RECORDS, 2), range(0, _RECORDS, 3)]
    for a in sides[0]:
        for b in range(a % _KEYS, _RECORDS, _KEYS):
            if b % 3:
                continue
            if a // 100 == b // 100:
                expected["tumbling", a, b] += 1
            expected["sliding", a, b] += max(0, 2 - abs(a // 100 - b // 100))
            expected["interval", a, b] += -200 <= (b - a) * 10 <= 300
    for key in range(_KEYS):
        lengths = [sum(number % _KEYS == key for number in side) for side in sides]
        expected["session", lengths[0], lengths[1]] += 1
    assert found == +expected


def test_joins_without_a_window(env: StreamExecutionEnvironment) -> None:
    left, right = _numbers(env, "left", 2), _numbers(env, "right", 3)
    pairs = left.join_on(right, "full").where(lambda r: r[1]).equal_to(lambda r: r[1])
    with_itself = left.join_on(left).where(_key).equal_to(_key).filter(lambda a, b: a[1] == b[1])
    both = pairs.apply(lambda a, b: ("full", a and a[1], b and b[1])).union(
        with_itself.apply(lambda a, b: ("self", a[1], b[1]))
    )
    with both.execute_and_collect("changes") as collected:
        changes = list(collected)
    expected: Counter[Any] = Counter(("self", n, n) for n in range(0, _RECORDS, 2))
    for n in range(_RECORDS):
        if n % 2 == 0 or n % 3 == 0:
            expected["full", n if n % 2 == 0 else None, n if n % 3 == 0 else None] += 1
    # Changes of different rows come in any order, those of one row in theirs.
    by_row: dict[Any, list[Any]] = {}
    for change in changes:
        number = change[1] if change[1] is not None else change[2]
        by_row.setdefault((change[0], number), []).append(change)
    found: Counter[Any] = Counter()
    for rows in by_row.values():
        found += fold(rows)
    assert found == expected
