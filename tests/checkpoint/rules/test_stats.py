"""Checkpoint statistics: durations, sizes and causes of failures."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.checkpoint.metadata import SubtaskState
from firesteel.checkpoint.rules.stats import SubtaskStats, explain
from firesteel.checkpoint.rules.tasks import TaskAck, TaskTiming
from firesteel.state.changelog import Segment, SegmentFile
from tests.checkpoint.coordination import acks, complete, coordinator, segment, start, written


def _subtask(
    vertex: int = 2,
    index: int = 0,
    size: int = 1000,
    *,
    is_source: bool = False,
    **timing: Any,
) -> SubtaskStats:
    name = "numbers" if is_source else "count"
    return SubtaskStats(
        vertex, name, index, 4, is_source, 0, TaskTiming(**timing), size, checkpointed_size=size
    )


_QUICK = [_subtask(1, 0, is_source=True, start_delay=0.1)] + [
    _subtask(2, index, start_delay=0.2, sync=0.1, asynchronous=30.0) for index in range(4)
]


@pytest.mark.parametrize(
    ("subtasks", "write_seconds", "words"),
    [
        (
            [_subtask(1, 0, is_source=True, start_delay=8.0), *_QUICK[1:]],
            0.1,
            "8.0 s, was waiting for the source 'numbers' (1/4) to read. The source is slow",
        ),
        (
            [*_QUICK[:4], _subtask(2, 3, start_delay=6.0, alignment=2.0)],
            0.1,
            "7.9 s, was the way of the barrier from the sources to 'count' (4/4). The cause is back",
        ),
        (
            [*_QUICK[:4], _subtask(2, 3, 80_000_000, sync=8.0)],
            0.1,
            "wrote 80.0 MB of 100 B. The other subtasks took 0.1 s. The cause is skew",
        ),
        (
            [_subtask(2, index, 8_000_000, sync=8.0) for index in range(4)],
            0.1,
            "which wrote 8.0 MB at 1.0 MB per second. The storage is slow",
        ),
        (
            [_subtask(2, index, 4_000_000_000, sync=8.0) for index in range(4)],
            0.1,
            "which wrote 4.0 GB. The state is large",
        ),
        (_QUICK, 8.0, "8.0 s, was writing the metadata, after all subtasks were done"),
    ],
    ids=["source", "back pressure", "skew", "storage", "size", "metadata"],
)
def test_a_slow_one_is_explained(
    subtasks: list[SubtaskStats], write_seconds: float, words: str
) -> None:
    sentence = explain(subtasks, duration=9.0, write_seconds=write_seconds, written=100)
    assert sentence.startswith("It took 9.0 s. ")
    assert words in sentence


def test_the_history_has_every_subtask() -> None:
    it = coordinator()
    start(it, 10.0, epoch=3)
    timing = TaskTiming(start_delay=0.1, alignment=0.2, sync=0.3, asynchronous=0.4)
    state = SubtaskState((Segment(1, True, 100, inline=b"x"), Segment(3, False, 20, inline=b"y")))
    it.acknowledge(1, [TaskAck((2, 1), {"c": state}, timing=timing)], 11.0)
    written(it, it.acknowledge(1, acks([(1, 0), (2, 0)]), 12.0), 12.5)

    stats = it.stats.find(1)
    assert stats is not None
    details = stats.details()
    assert details["status"] == "COMPLETED"
    assert details["trigger_timestamp"] == 1_010_000
    assert details["latest_ack_timestamp"] == 1_012_000
    assert details["end_to_end_duration"] == 2500
    assert details["write_duration"] == 500
    assert (details["state_size"], details["checkpointed_size"]) == (120, 120)
    assert details["external_path"] == "/job/chk-1"
    assert set(details["tasks"]) == {"1", "2"}
    assert details["tasks"]["2"]["subtasks"][1] == {
        "index": 1,
        "status": "completed",
        "ack_timestamp": 1_011_000,
        "end_to_end_duration": 600,
        "start_delay": 100,
        "alignment": {"duration": 200, "persisted": 0},
        "unaligned_checkpoint": False,
        "checkpoint": {"sync": 300, "async": 400},
        "state_size": 120,
        "checkpointed_size": 120,
    }


def test_what_an_earlier_checkpoint_has_was_not_written_again() -> None:
    it = coordinator()
    complete(it, 10.0, epoch=4, files=["a"])
    start(it, 20.0, epoch=9)
    shared = SegmentFile("1.sst", 500, 0, path="/job/shared/1.sst")
    new = SegmentFile("2.sst", 7, 0, path="/job/shared/2.sst")
    state = SubtaskState(
        (
            segment("a", epoch=4),
            Segment(4, True, 500, files=(shared,)),
            Segment(8, True, 507, files=(shared, new)),
            Segment(9, False, 30, inline=b"x"),
        )
    )
    it.acknowledge(2, [TaskAck((2, 0), {"c": state})], 20.0)
    stats = it.stats.find(2)
    assert stats is not None
    assert (stats.state_size, stats.checkpointed_size) == (1137, 37)


def test_counts_latest_and_the_last_ones() -> None:
    it = coordinator(history_size=3, tolerable_failures=100)
    for number in range(1, 5):
        complete(it, number * 10.0)
    start(it, 50.0)
    it.write_failed(5, ValueError("no"), 51.0)
    start(it, 60.0)
    overview = it.stats.overview()
    assert overview["counts"] == {
        "restored": 0,
        "total": 6,
        "in_progress": 1,
        "completed": 4,
        "failed": 1,
    }
    assert [entry["id"] for entry in overview["history"]] == [6, 5, 4, 3]
    assert overview["latest"]["completed"]["id"] == 4
    assert overview["latest"]["failed"]["failure_message"].endswith("(no)")
    assert overview["latest"]["restored"] is None
    assert overview["history"][3]["discarded"]
    latest = it.store.latest
    assert latest is not None
    it.restored(latest, 70.0)
    assert it.stats.overview()["latest"]["restored"]["id"] == 4


def test_only_slow_ones_are_explained() -> None:
    it = coordinator(interval=100.0, history_size=20)
    for number, duration in enumerate([0.6] * 5 + [5.0, 0.1], start=1):
        now = number * 100.0
        start(it, now)
        write = it.acknowledge(number, acks(), now)
        written(it, write, now + duration)
    explained = {entry["id"]: entry["explanation"] for entry in it.stats.overview()["history"]}
    assert [number for number, sentence in explained.items() if sentence] == [6]
    assert "writing the metadata" in explained[6]
