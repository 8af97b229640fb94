"""Joins in whole jobs: any channels, epochs, parallelism and faults give the same result."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common.time import Duration, Time
from firesteel.common.types import RowKind
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream.functions import ProcessJoinFunction
from firesteel.testing import Fault, JobHarness, ScriptedSource, Timed
from tests.task.windows import sliding
from tests.thoroughness import examples

_DISORDER = 10
_ADDED = (RowKind.INSERT, RowKind.UPDATE_AFTER)

# Timestamps ascend on the whole, but not record by record.
_streams = st.lists(
    st.tuples(st.sampled_from("abcde"), st.integers(0, 4), st.integers(0, _DISORDER)), max_size=25
)
_faults = st.dictionaries(
    st.integers(1, 8), st.tuples(st.integers(0, 5), st.sampled_from(list(Fault))), max_size=4
)


def _timed(stream: list[tuple[str, int, int]]) -> list[Timed]:
    records, time = [], 0
    for number, (key, step, disorder) in enumerate(stream):
        time += step
        records.append(Timed((key, number), time - disorder))
    return records


class Pair(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        yield left, right


def _key(record: Any) -> Any:
    return record[0]


def _windows_of(timestamp: int) -> set[int]:
    last = timestamp - timestamp % 4
    return set(range(last, timestamp - 12, -4))


@given(
    left=_streams,
    right=_streams,
    parallelism=st.integers(1, 3),
    budget=st.integers(1, 12),
    seed=st.integers(0, 9),
    faults=_faults,
)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_all_joins_give_what_nested_loops_give(left, right, parallelism, budget, seed, faults):
    scripts = [_timed(left), _timed(right)]
    # The watermark of a source is never ahead of what it still sends, so nothing is late.
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(_DISORDER))

    def program(env: Any) -> Any:
        a, b = (env.from_source(ScriptedSource(s), strategy, str(n)) for n, s in enumerate(scripts))
        windows = a.join(b).where(_key).equal_to(_key).window(sliding(12, 4))
        intervals = a.key_by(_key).interval_join(b.key_by(_key))
        return (
            windows.apply(lambda x, y: (x, y)),
            intervals.between(Time.milliseconds(-3), Time.milliseconds(5)).process(Pair()),
            a.join_on(b, "full").where(_key).equal_to(_key).apply(),
        )

    harness = JobHarness(program, parallelism=parallelism, records_per_epoch=budget, seed=seed)
    places = harness.places()
    harness.run(
        {epoch: {places[place % len(places)]: fault} for epoch, (place, fault) in faults.items()}
    )
    expected: list[Counter[Any]] = [Counter(), Counter(), Counter()]
    keys = [{record.value[0] for record in script} for script in scripts]
    for x in scripts[0]:
        expected[2][x.value, None] += x.value[0] not in keys[1]
        for y in scripts[1]:
            if x.value[0] == y.value[0]:
                pair = x.value, y.value
                expected[0][pair] += len(_windows_of(x.timestamp) & _windows_of(y.timestamp))
                expected[1][pair] += -3 <= y.timestamp - x.timestamp <= 5
                expected[2][pair] += 1
    for y in scripts[1]:
        expected[2][None, y.value] += y.value[0] not in keys[0]
    windows, intervals, changes = harness.collected_by_stream
    folded: Counter[Any] = Counter()
    for change in changes:
        folded[tuple(change)] += 1 if change.get_row_kind() in _ADDED else -1
    assert [Counter(windows), Counter(intervals), folded] == expected
