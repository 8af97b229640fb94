"""The root of back pressure, from the shares of time of the vertices."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from firesteel.master.job_description import InputDescription, VertexDescription
from firesteel.rest.back_pressure import level_of, roots
from firesteel.rest.job_view import JobView, SubtaskView, VertexView


def vertex(name: str, waits: float, busy: float, *inputs: str, others: Any = ()) -> VertexView:
    """Return a vertex. ``others`` are pairs of the shares of further subtasks."""
    shares = [(waits, busy), *others]
    description = VertexDescription(
        id=name,
        number=0,
        name=name,
        parallelism=len(shares),
        max_parallelism=128,
        slot_sharing_group="default",
        level=0,
        slot_offset=0,
        operators=(),
        inputs=tuple(InputDescription(one, "REBALANCE") for one in inputs),
    )
    subtasks = [
        SubtaskView(
            index,
            0,
            "RUNNING",
            "host",
            "host",
            {},
            {
                "metrics": {
                    "backPressuredTimeMsPerSecond": 1000 * waits,
                    "busyTimeMsPerSecond": 1000 * busy,
                }
            },
        )
        for index, (waits, busy) in enumerate(shares)
    ]
    return VertexView(description, subtasks)


def root_names(*vertices: VertexView) -> list[str]:
    return [one.id for one in roots(cast(JobView, SimpleNamespace(vertices=vertices)))]


@pytest.mark.parametrize(
    ("ratio", "level"), [(0.0, "ok"), (0.1, "ok"), (0.11, "low"), (0.5, "low"), (0.51, "high")]
)
def test_the_levels_are_those_of_flink(ratio: float, level: str) -> None:
    assert level_of(ratio) == level


def test_the_first_vertex_that_does_not_wait_is_the_root() -> None:
    chain = [
        vertex("source", 0.9, 0.1),
        vertex("map", 0.8, 0.2, "source"),
        vertex("slow", 0.0, 1.0, "map"),
        vertex("sink", 0.0, 0.05, "slow"),
    ]
    assert root_names(*chain) == ["slow"]


def test_without_back_pressure_there_is_no_root() -> None:
    assert root_names(vertex("source", 0.0, 1.0), vertex("sink", 0.0, 0.9, "source")) == []


def test_an_idle_join_is_no_root_although_one_of_its_inputs_waits_with_its_slot() -> None:
    job = [
        vertex("left", 0.86, 0.05),
        vertex("slow input", 0.0, 0.9, "left"),
        vertex("right", 0.86, 0.09),
        vertex("join", 0.0, 0.0, "slow input", "right"),
    ]
    assert root_names(*job) == ["slow input"]


def test_all_saturated_vertices_are_roots() -> None:
    job = [
        vertex("source", 0.9, 0.1),
        vertex("first", 0.0, 0.9, "source"),
        vertex("second", 0.0, 0.95, "source"),
        vertex("third", 0.0, 0.3, "source"),
    ]
    assert root_names(*job) == ["first", "second"]


def test_a_little_back_pressure_before_vertices_with_time_left_has_no_root() -> None:
    assert root_names(vertex("source", 0.14, 0.86), vertex("sink", 0.0, 0.37, "source")) == []


def test_the_busiest_is_the_root_if_none_is_saturated() -> None:
    job = [
        vertex("source", 0.6, 0.4),
        vertex("first", 0.0, 0.6, "source"),
        vertex("second", 0.0, 0.4, "source"),
    ]
    assert root_names(*job) == ["first"]


def test_nothing_is_known_before_the_first_figures() -> None:
    assert root_names(vertex("source", 0.9, 0.0), vertex("sink", 0.0, 0.0, "source")) == []


def test_one_hot_subtask_is_enough() -> None:
    job = [
        vertex("source", 0.9, 0.1),
        vertex("keyed", 0.0, 0.02, "source", others=[(0.0, 0.99)]),
        vertex("sink", 0.0, 0.01, "keyed"),
    ]
    assert root_names(*job) == ["keyed"]
