"""Metrics: values, names and merging."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.metrics import (
    Counter,
    Distribution,
    Gauge,
    Meter,
    MetricRegistry,
    counter_totals,
    job_report,
    merge_snapshots,
)


class ManualClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_counter_goes_up_and_down() -> None:
    counter = Counter()
    counter.inc()
    counter.inc(10)
    counter.dec(4)
    assert counter.get_count() == 7


def test_a_distribution_before_its_first_value() -> None:
    empty = Distribution()
    assert empty.get_mean() is None
    assert empty.get_min() is None
    assert empty.get_max() is None
    assert (empty.get_count(), empty.get_sum()) == (0, 0)


def test_a_distribution_summarizes() -> None:
    sizes = Distribution()
    for size in (5, 1, 9):
        sizes.update(size)
    assert (sizes.get_count(), sizes.get_sum()) == (3, 15)
    assert (sizes.get_min(), sizes.get_max(), sizes.get_mean()) == (1, 9, 5.0)


def test_a_meter_forgets_what_lies_before_its_span() -> None:
    clock = ManualClock()
    meter = Meter(60, clock)
    meter.mark_event(600)
    clock.now += 10
    assert meter.get_rate() == 60.0
    for _ in range(30):  # five quiet minutes, asked now and then
        clock.now += 10
        meter.get_rate()
    assert meter.get_rate() == 0.0
    assert meter.get_count() == 600


def test_a_meter_holds_few_samples_however_often_it_is_asked() -> None:
    clock = ManualClock()
    meter = Meter(60, clock)
    for _ in range(10_000):
        clock.now += 0.1
        meter.mark_event()
        meter.get_rate()
    assert meter.get_rate() == pytest.approx(10, rel=0.02)
    assert len(meter._samples) < 20


def test_a_meter_that_was_just_made_has_no_rate() -> None:
    meter = Meter(60, ManualClock())
    meter.mark_event()
    assert meter.get_rate() == 0.0


@pytest.mark.parametrize("span", [0, -1])
def test_a_meter_needs_a_span(span: int) -> None:
    with pytest.raises(ValueError, match="time span"):
        Meter(span)


def test_names_are_the_scope_joined_by_dots() -> None:
    registry = MetricRegistry()
    group = registry.group("Map").add_group("mine").add_group("shop", "north")
    group.counter("sold").inc()
    assert group.get_scope_components() == ("Map", "mine", "shop", "north")
    assert group.get_metric_identifier("sold") == "Map.mine.shop.north.sold"
    assert registry.snapshot() == {
        "Map.mine.shop.north.sold": {"kind": "counter", "count": 1},
    }


def test_the_same_name_is_the_same_metric() -> None:
    group = MetricRegistry().group("Map")
    group.counter("n").inc()
    group.counter("n").inc()
    assert group.counter("n").get_count() == 2
    assert group.meter("m") is group.meter("m")
    assert group.distribution("d") is group.distribution("d")


def test_one_name_cannot_be_two_kinds() -> None:
    group = MetricRegistry().group("Map")
    group.counter("n")
    with pytest.raises(
        ValueError, match=r"'Map\.n' is already a Counter and cannot also be a Meter"
    ):
        group.meter("n")
    with pytest.raises(ValueError, match="cannot also be a Gauge"):
        group.gauge("n", lambda: 1)


def test_a_gauge_is_asked_at_each_snapshot_and_can_be_replaced() -> None:
    registry = MetricRegistry()
    values = iter([1, 2])
    registry.group().gauge("g", lambda: next(values))
    assert registry.snapshot()["g"]["values"] == [1]
    assert registry.snapshot()["g"]["values"] == [2]
    registry.group().gauge("g", lambda: "new")
    assert registry.snapshot()["g"]["values"] == ["new"]


def test_a_gauge_that_fails_gives_null_and_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    gauge = Gauge(lambda: 1 // 0)
    assert gauge.snapshot() == gauge.snapshot() == {"kind": "gauge", "values": [None]}
    assert len(caplog.records) == 1


def test_a_gauge_needs_a_callable() -> None:
    with pytest.raises(TypeError, match="callable"):
        MetricRegistry().group().gauge("g", 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), b"x", {1: 2}])
def test_every_snapshot_is_strict_json(value: object) -> None:
    registry = MetricRegistry()
    registry.group().gauge("g", lambda: value)
    json.dumps(registry.snapshot(), allow_nan=False)


def test_merging() -> None:
    first, second = MetricRegistry(ManualClock()), MetricRegistry(ManualClock())
    for registry, amount in ((first, 1), (second, 2)):
        group = registry.group("op")
        group.counter("c").inc(amount)
        group.meter("m").mark_event(amount)
        group.distribution("d").update(amount * 10)
        group.gauge("g", partial(int, amount))
    second.group("op").counter("only here").inc()
    assert merge_snapshots([first.snapshot(), second.snapshot()]) == {
        "op.c": {"kind": "counter", "count": 3},
        "op.m": {"kind": "meter", "count": 3, "rate": 0.0},
        "op.d": {
            "kind": "distribution",
            "count": 2,
            "sum": 30,
            "min": 10,
            "max": 20,
            "mean": 15.0,
        },
        "op.g": {"kind": "gauge", "values": [1, 2]},
        "op.only here": {"kind": "counter", "count": 1},
    }


def test_merging_changes_none_of_its_inputs() -> None:
    snapshot = {"g": {"kind": "gauge", "values": [1]}}
    merge_snapshots([snapshot, snapshot])
    assert snapshot == {"g": {"kind": "gauge", "values": [1]}}


def test_kinds_that_differ_do_not_merge() -> None:
    counter = {"x": {"kind": "counter", "count": 1}}
    gauge = {"x": {"kind": "gauge", "values": [1]}}
    with pytest.raises(ValueError, match="'x' is a counter in one subtask and a gauge"):
        merge_snapshots([counter, gauge])


def test_a_number_never_takes_a_name_that_an_operator_was_given() -> None:
    counter = {"kind": "counter", "count": 1}
    names = {4: "Map", 2: "Map", 7: "Map #2", 1: "Filter"}
    subtask = {operator: {f"{name}.n": counter} for operator, name in names.items()}
    assert list(job_report(names, [subtask, subtask])) == [
        "Map.n",
        "Map #3.n",
        "Map #2.n",
        "Filter.n",
    ]


def test_counters_add_up_whatever_kind_other_subtasks_give_their_name() -> None:
    counter, meter = {"kind": "counter", "count": 1}, {"kind": "meter", "count": 5, "rate": 1.0}
    subtasks = [{1: {"Map.n": metric}} for metric in (counter, meter, counter)]
    assert counter_totals({1: "Map"}, subtasks) == {"Map.n": 2}


_OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["counter", "distribution", "gauge"]), st.integers(-9, 9))
)


def _snapshot(operations: list[tuple[str, int]]) -> dict[str, Any]:
    registry = MetricRegistry()
    group = registry.group()
    for kind, number in operations:
        if kind == "counter":
            group.counter("c").inc(number)
        elif kind == "distribution":
            group.distribution("d").update(number)
        else:
            group.gauge("g", partial(int, number))
    return registry.snapshot()


@given(st.lists(_OPERATIONS, max_size=5), st.integers(0, 5))
def test_merging_may_be_grouped_at_will(subtasks: list[list[tuple[str, int]]], cut: int) -> None:
    snapshots = [_snapshot(operations) for operations in subtasks]
    at_once = merge_snapshots(snapshots)
    in_two = merge_snapshots([merge_snapshots(snapshots[:cut]), merge_snapshots(snapshots[cut:])])
    assert at_once == in_two
