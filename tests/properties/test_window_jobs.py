"""Windows in whole jobs: any channels, epochs, parallelism and faults give the same final windows."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common.time import Duration, Time
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream.window import EventTimeSessionWindows
from firesteel.testing import Fault, JobHarness, ScriptedSource, Timed
from tests.operators.windows import Count, GeneralEventTimeTrigger, Tell, sliding, tumbling
from tests.properties.window_model import WindowModel, aligned, sessions

_DISORDER = 10

# Timestamps ascend on the whole, but not record by record.
_streams = st.lists(
    st.lists(
        st.tuples(st.sampled_from("abcde"), st.integers(0, 4), st.integers(0, _DISORDER)),
        max_size=25,
    ),
    min_size=1,
    max_size=3,
)
_faults = st.dictionaries(
    st.integers(1, 8), st.tuples(st.integers(0, 5), st.sampled_from(list(Fault))), max_size=4
)
_kinds = st.sampled_from(["tumbling", "sliding", "sessions", "general", "general sessions"])


def _timed(stream: list[tuple[str, int, int]]) -> list[Timed]:
    records, time = [], 0
    for number, (key, step, disorder) in enumerate(stream):
        time += step
        records.append(Timed((key, number), time - disorder))
    return records


def _windowed(kind: str, stream: Any) -> Any:
    keyed = stream.key_by(lambda record: record[0])
    if kind == "tumbling":
        windowed = keyed.window(tumbling(10))
    elif kind == "sliding":
        windowed = keyed.window(sliding(12, 4))
    elif kind == "general":
        windowed = keyed.window(sliding(12, 4)).trigger(GeneralEventTimeTrigger())
    else:
        windowed = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(4)))
    if kind == "general sessions":
        windowed.trigger(GeneralEventTimeTrigger())
    return windowed.aggregate(Count(), Tell())


_ASSIGN = {
    "tumbling": aligned(10, 10, 0),
    "sliding": aligned(12, 4, 0),
    "general": aligned(12, 4, 0),
    "sessions": sessions(4),
    "general sessions": sessions(4),
}


@given(
    streams=_streams,
    kind=_kinds,
    parallelism=st.integers(1, 3),
    budget=st.integers(1, 12),
    seed=st.integers(0, 9),
    faults=_faults,
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_final_windows_are_always_the_same(streams, kind, parallelism, budget, seed, faults):
    scripts = [_timed(stream) for stream in streams]
    # The watermark of a source is never ahead of what it still sends, so nothing is late.
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(_DISORDER))

    def program(env: Any) -> Any:
        first, *others = [
            env.from_source(ScriptedSource(script), strategy, f"source {number}")
            for number, script in enumerate(scripts)
        ]
        return _windowed(kind, first.union(*others))

    harness = JobHarness(program, parallelism=parallelism, records_per_epoch=budget, seed=seed)
    places = harness.places()
    harness.run(
        {epoch: {places[place % len(places)]: fault} for epoch, (place, fault) in faults.items()}
    )
    model = WindowModel(_ASSIGN[kind], 0, len, merges="sessions" in kind)
    for script in scripts:
        for record in script:
            model.add((record.value[0], record.value[1], record.timestamp))
    model.advance(2**63 - 1)
    assert Counter(harness.collected) == Counter(result for result, _ in model.take())
    (count,) = [m["count"] for m in harness.metrics().values()]
    assert count == 0
