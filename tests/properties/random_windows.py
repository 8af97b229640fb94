"""Random event-time streams, windows over them, and their results in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from firesteel.common.time import Duration, Time
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream.window import EventTimeSessionWindows
from firesteel.testing import ScriptedSource, Timed
from tests.properties.window_model import WindowModel, aligned, sessions
from tests.task.windows import Count, GeneralEventTimeTrigger, Tell, sliding, tumbling

_DISORDER = 10

# (key, step of time, disorder): timestamps ascend on the whole, but not record by record.
streams = st.lists(
    st.lists(
        st.tuples(st.sampled_from("abcde"), st.integers(0, 4), st.integers(0, _DISORDER)),
        max_size=25,
    ),
    min_size=1,
    max_size=3,
)
kinds = st.sampled_from(["tumbling", "sliding", "sessions", "general", "general sessions"])


def timed(stream: list[tuple[str, int, int]]) -> list[Timed]:
    records, time = [], 0
    for number, (key, step, disorder) in enumerate(stream):
        time += step
        records.append(Timed((key, number), time - disorder))
    return records


def window_job(env: Any, kind: str, scripts: Iterable[list[Any]]) -> Any:
    """One source a script, and the windows of all of them.

    The watermark of a source is never ahead of what it still sends, so nothing is late.
    """
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(_DISORDER))
    first, *others = [
        env.from_source(ScriptedSource(script), strategy, f"source {number}").set_parallelism(1)
        for number, script in enumerate(scripts)
    ]
    return _windowed(kind, first.union(*others))


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


def expected_windows(kind: str, records: Iterable[Timed]) -> Counter[Any]:
    model = WindowModel(_ASSIGN[kind], 0, len, merges="sessions" in kind)
    for record in records:
        model.add((record.value[0], record.value[1], record.timestamp))
    model.advance(2**63 - 1)
    return Counter(result for result, _ in model.take())
