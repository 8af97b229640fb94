"""Operators with the same name have separate metrics, chained or not."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.functions import MapFunction, RuntimeContext
from firesteel.testing import JobHarness


class Measured(MapFunction):
    """Has a metric ``seen`` of a kind, and counts the records that it sees."""

    def __init__(self, kind: str, size: int = 0) -> None:
        self._kind = kind
        self._size = size

    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        if self._kind == "gauge":
            group.gauge("seen", lambda: self._size)
        else:
            metric = getattr(group, self._kind)("seen")
            self._count = metric.inc if self._kind == "counter" else metric.mark_event

    def map(self, value: int) -> int:
        if self._kind != "gauge":
            self._count()
        return value


def _count(metrics: dict[str, Any], name: str) -> tuple[str, int]:
    return metrics[name]["kind"], metrics[name]["count"]


@pytest.fixture(name="apart", params=[False, True], ids=["chained", "not chained"])
def _apart(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def _run(*functions: MapFunction, apart: bool, parallelism: int = 2) -> JobHarness:
    def program(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_collection(range(6)).rebalance()
        for function in functions:
            stream = stream.map(function)
            if apart:
                stream = stream.disable_chaining()
        return stream

    harness = JobHarness(program, parallelism=parallelism, records_per_epoch=2)
    harness.run()
    return harness


def test_each_operator_of_a_name_counts_for_itself(apart: bool) -> None:
    metrics = _run(Measured("counter"), Measured("counter"), Measured("counter"), apart=apart)
    assert metrics.metrics() == {
        name: {"kind": "counter", "count": 6} for name in ("Map.seen", "Map #2.seen", "Map #3.seen")
    }


def test_operators_of_a_name_may_have_metrics_of_different_kinds(apart: bool) -> None:
    harness = _run(Measured("meter"), Measured("counter"), Measured("gauge", 7), apart=apart)
    metrics = harness.metrics()
    assert _count(metrics, "Map.seen") == ("meter", 6)
    assert _count(metrics, "Map #2.seen") == ("counter", 6)
    assert metrics["Map #3.seen"] == {"kind": "gauge", "values": [7, 7]}
    assert harness.master.metrics.user_counters() == {"Map #2.seen": 6}


def test_no_gauge_is_lost(apart: bool) -> None:
    harness = _run(Measured("gauge", 1), Measured("gauge", 2), apart=apart, parallelism=1)
    assert [metric["values"] for metric in harness.metrics().values()] == [[1], [2]]


def test_operators_without_metrics_are_not_numbered() -> None:
    harness = JobHarness(
        lambda env: env.from_collection([1, 2]).map(lambda v: v).map(Measured("counter"))
    )
    harness.run()
    assert harness.metrics() == {"Map.seen": {"kind": "counter", "count": 2}}
