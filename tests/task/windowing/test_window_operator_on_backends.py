"""Every kind of window gives the same results on every state backend, with lost processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firesteel.common import Configuration, Duration, Time, WatermarkStrategy
from firesteel.datastream.functions import WindowFunction
from firesteel.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    EventTimeSessionWindows,
)
from firesteel.testing import Fault, JobHarness, ScriptedSource, Timed
from tests.task.windows import (
    Count,
    GeneralEventTimeTrigger,
    Tell,
    Values,
    sliding,
    tumbling,
)

_RECORDS = [Timed((key, n), n * 3) for n, key in enumerate("abcabcaabbccabcabc" * 5)]
_SESSIONS = EventTimeSessionWindows.with_gap(Time.milliseconds(4))
_EARLY = ContinuousEventTimeTrigger.of(Time.milliseconds(7))


class All(WindowFunction):
    def apply(self, key, window, inputs):
        yield key, window.start, window.end, sorted(value for _, value in inputs)


_KINDS: dict[str, Callable[[Any], Any]] = {
    "tumbling": lambda keyed: keyed.window(tumbling()).aggregate(Values(), Tell()),
    "sliding": lambda keyed: keyed.window(sliding(30, 10)).aggregate(Values(), Tell()),
    "sliding, of records": lambda keyed: keyed.window(sliding(30, 10)).apply(All()),
    "general": lambda keyed: (
        keyed.window(sliding(30, 10)).trigger(GeneralEventTimeTrigger()).aggregate(Count(), Tell())
    ),
    "sessions": lambda keyed: keyed.window(_SESSIONS).aggregate(Count(), Tell()),
    "sessions of records": lambda keyed: keyed.window(_SESSIONS).apply(All()),
    "counts": lambda keyed: keyed.count_window(3, 2).sum(1),
    "evictor": lambda keyed: keyed.window(sliding(30, 10)).evictor(CountEvictor.of(2)).apply(All()),
    "updates": lambda keyed: (
        keyed.window(sliding(30, 10)).trigger(_EARLY).output_mode("update").sum(1)
    ),
}


def _run(kind: str, backend: str, *, loses_hosts: bool) -> list[Any]:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))

    def program(env: Any) -> Any:
        stream = env.from_source(ScriptedSource(_RECORDS), strategy, "records")
        return _KINDS[kind](stream.key_by(lambda record: record[0]))

    configuration = Configuration()
    configuration.set_string("state.backend.type", backend)
    harness = JobHarness(program, parallelism=2, records_per_epoch=7, configuration=configuration)
    lost = dict.fromkeys(harness.places(), Fault.LOSE_HOST)
    harness.run(dict.fromkeys(range(2, 12, 2), lost) if loses_hosts else None)
    return sorted(map(repr, harness.collected))


@pytest.mark.parametrize(
    "kind",
    [
        kind
        if kind in ("tumbling", "sliding", "sessions")
        else pytest.param(kind, marks=pytest.mark.slow)
        for kind in _KINDS
    ],
)
def test_windows_on_every_backend(kind):
    expected = _run(kind, "hashmap", loses_hosts=False)
    assert len(expected) > 20
    assert _run(kind, "hashmap", loses_hosts=True) == expected
    assert _run(kind, "rocksdb", loses_hosts=True) == expected
