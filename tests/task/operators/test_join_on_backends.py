"""Every kind of join gives the same results on every state backend, with lost processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firesteel.common import Configuration, Duration, Time, WatermarkStrategy
from firesteel.datastream.functions import ProcessJoinFunction
from firesteel.datastream.window import CountEvictor, EventTimeSessionWindows
from firesteel.testing import Fault, JobHarness, ScriptedSource, Timed
from tests.task.windows import GeneralEventTimeTrigger, sliding, tumbling

_LEFT = [Timed((key, n), n * 3) for n, key in enumerate("abcabcaabbccabcabc" * 3)]
_RIGHT = [Timed((key, -n), n * 4) for n, key in enumerate("cbacbaccbbaacbac" * 2)]
_SESSIONS = EventTimeSessionWindows.with_gap(Time.milliseconds(4))


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right


def _key(record: Any) -> Any:
    return record[0]


def _joined(a: Any, b: Any, assigner: Any) -> Any:
    return a.join(b).where(_key).equal_to(_key).window(assigner)


def _pair(left: Any, right: Any) -> Any:
    return left, right


def _grouped(left: Any, right: Any) -> Any:
    yield sorted(left), sorted(right)


_KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "tumbling": lambda a, b: _joined(a, b, tumbling(30)).apply(_pair),
    "sliding": lambda a, b: _joined(a, b, sliding(30, 10)).apply(_pair),
    "general": lambda a, b: (
        _joined(a, b, sliding(30, 10)).trigger(GeneralEventTimeTrigger()).apply(_pair)
    ),
    "evictor": lambda a, b: _joined(a, b, tumbling(60)).evictor(CountEvictor.of(9)).apply(_pair),
    "sessions": lambda a, b: (
        a.co_group(b).where(_key).equal_to(_key).window(_SESSIONS).apply(_grouped)
    ),
    "interval": lambda a, b: (
        a.key_by(_key)
        .interval_join(b.key_by(_key))
        .between(Time.milliseconds(-15), Time.milliseconds(10))
        .process(Pair())
    ),
    "inner": lambda a, b: a.join_on(b).where(_key).equal_to(_key).apply(),
    "full": lambda a, b: (
        a.join_on(b, "full")
        .where(_key)
        .equal_to(_key)
        .filter(lambda left, right: left[1] < -right[1])
        .apply(lambda left, right: (left, right))
    ),
}


def _run(kind: str, backend: str, *, loses_hosts: bool) -> list[Any]:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))

    def program(env: Any) -> Any:
        left = env.from_source(ScriptedSource(_LEFT), strategy, "left")
        right = env.from_source(ScriptedSource(_RIGHT), strategy, "right")
        return _KINDS[kind](left, right)

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
        if kind in ("inner", "interval", "tumbling")
        else pytest.param(kind, marks=pytest.mark.slow)
        for kind in _KINDS
    ],
)
def test_joins_on_every_backend(kind):
    expected = _run(kind, "hashmap", loses_hosts=False)
    assert len(expected) > 20
    assert _run(kind, "hashmap", loses_hosts=True) == expected
    assert _run(kind, "rocksdb", loses_hosts=True) == expected
