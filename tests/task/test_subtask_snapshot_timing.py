"""Durations of checkpoint phases, measured by each subtask and shown in the history."""

from __future__ import annotations

import time
from typing import Any

from firesteel.checkpoint.metadata import SnapshotType
from firesteel.checkpoint.rules.coordinator import CheckpointCoordinator
from firesteel.checkpoint.rules.requests import SnapshotRequest
from firesteel.checkpoint.rules.settings import CheckpointSettings
from firesteel.checkpoint.rules.tasks import operators_of
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import CheckpointedFunction, MapFunction
from firesteel.master.rate_control import RateControl
from firesteel.protocol.messages import decode
from firesteel.protocol.program import JobProgram, PackedProgram
from firesteel.protocol.rows import ACK, BARRIER, DATA, END_OF_EPOCH, WATERMARK, BufferRow, rows_of
from firesteel.task.slot import Slot, control_row
from firesteel.testing import ScriptedSource
from tests.job_masters import started_master

_RECORD_SECONDS, _SNAPSHOT_SECONDS = 0.02, 0.05


class Slow(MapFunction, CheckpointedFunction):
    """Needs time for every record, and for its snapshot."""

    def map(self, value: Any) -> Any:
        time.sleep(_RECORD_SECONDS)
        return value

    def initialize_state(self, context: Any) -> None:
        """It has none."""

    def snapshot_state(self, context: Any) -> None:
        time.sleep(_SNAPSHOT_SECONDS)


def _checkpoint_of_two_sources() -> dict[str, Any]:
    """The details of a checkpoint: a and b, three records each -> global -> Slow."""
    env = StreamExecutionEnvironment().set_parallelism(1)
    a, b = (env.from_source(ScriptedSource([1, 2, 3]), None, name) for name in "ab")
    a.union(b).global_().map(Slow()).print()
    job = env._compile("job")
    assert job.levels.slots == (1, 1)
    program = JobProgram("job", "the job", 0, job.levels)
    now = time.monotonic()
    coordinator = CheckpointCoordinator(
        CheckpointSettings(),
        operators_of(job.levels.job_graph),
        "job",
        "the job",
        now,
        wall_clock_offset=time.time() - now,
    )
    master = started_master(program, RateControl(10.0), coordinator=coordinator)
    master.request_snapshot(SnapshotRequest("now", SnapshotType.CHECKPOINT))
    master.delay(time.monotonic())
    plan = master.plan_epoch(time.monotonic())
    rows: list[BufferRow] = []
    for level, control in enumerate(plan.controls):
        slot = Slot(PackedProgram.pack(program).unpack(), level, 0)
        batches = slot.run_epoch(control.address, rows, control if level == 0 else None)
        rows = [row for batch in batches for row in rows_of(batch)]
        if level == 0:
            # One input after the other, as if they came from different machines.
            rows = [*map(control_row, plan.controls[1:]), *sorted(rows, key=_edge)]
    acks = [decode(row.payload) for row in rows if row.kind == ACK]
    master.epoch_ended(acks, [], time.monotonic())
    stats = coordinator.stats.find(1)
    assert stats is not None
    return stats.details()


def _edge(row: BufferRow) -> int:
    return row.edge if row.kind in (DATA, WATERMARK, BARRIER, END_OF_EPOCH) else -1


def test_every_subtask_says_what_it_waited_for() -> None:
    details = _checkpoint_of_two_sources()
    by_name = {task["name"]: task["subtasks"][0] for task in details["tasks"].values()}
    slow = by_name.pop("Map -> Sink: Print to Std. Out")
    records = 3 * _RECORD_SECONDS * 1000
    # The barrier of one input was there when its records were done; then came those of the other.
    assert slow["start_delay"] >= records - 1
    assert slow["alignment"]["duration"] >= records - 1
    assert slow["checkpoint"]["sync"] >= _SNAPSHOT_SECONDS * 1000 - 1
    for source in by_name.values():
        assert source["alignment"]["duration"] == 0
        assert source["start_delay"] < slow["start_delay"]
        assert source["checkpoint"]["sync"] < slow["checkpoint"]["sync"]
    parts = slow["start_delay"] + slow["alignment"]["duration"] + slow["checkpoint"]["sync"]
    assert abs(slow["end_to_end_duration"] - parts) <= 2
    # It was acknowledged after all of it.
    assert details["latest_ack_timestamp"] - details["trigger_timestamp"] >= parts - 3
