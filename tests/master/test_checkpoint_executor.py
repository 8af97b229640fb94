"""The threads that write checkpoints and savepoints."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from firesteel.checkpoint.metadata import CheckpointMetadata, SnapshotType
from firesteel.checkpoint.rules.decisions import WriteSnapshot
from firesteel.checkpoint.rules.requests import SnapshotRequest
from firesteel.checkpoint.snapshot_writer import WrittenSnapshot
from firesteel.errors import LeadershipLostError
from firesteel.master.checkpoint_executor import CheckpointExecutor
from firesteel.master.edge import SingleThread
from firesteel.master.job_master import Raised

_METADATA = CheckpointMetadata(1, SnapshotType.CHECKPOINT, "job", "job", 1, 0, 0, ())
_CHECKPOINT = WriteSnapshot(_METADATA, None)
_SAVEPOINT = WriteSnapshot(
    _METADATA, SnapshotRequest("request", SnapshotType.SAVEPOINT, "/savepoints/savepoint-1")
)


def _executor(writer: Any, posted: list[Any]) -> CheckpointExecutor:
    threads = SingleThread("checkpoints"), SingleThread("savepoints")
    return CheckpointExecutor(writer, *threads, posted.append)


class _Failing:
    def __init__(self, error: BaseException) -> None:
        self._error = error

    def write(self, order: WriteSnapshot) -> Any:
        raise self._error


@pytest.mark.parametrize("order", [_CHECKPOINT, _SAVEPOINT], ids=["checkpoint", "savepoint"])
@pytest.mark.parametrize("error", [LeadershipLostError(7, "term 8 has begun"), SystemExit(1)])
def test_an_error_that_the_work_does_not_handle_fails_the_job(
    error: BaseException, order: WriteSnapshot
) -> None:
    posted: list[Any] = []
    executor = _executor(_Failing(error), posted)
    executor.carry_out(order)
    executor.close()
    (event,) = posted
    assert isinstance(event, Raised)
    assert event.error is error


class _HangsInSavepoints:
    def __init__(self) -> None:
        self.answers = threading.Event()

    def write(self, order: WriteSnapshot) -> WrittenSnapshot:
        if order is _SAVEPOINT:
            assert self.answers.wait(60)
        return WrittenSnapshot(1, "/chk-1", _METADATA)


def test_a_checkpoint_does_not_wait_while_the_driver_completes_a_savepoint() -> None:
    writer, posted = _HangsInSavepoints(), list[Any]()
    executor = _executor(writer, posted)
    try:
        executor.carry_out(_SAVEPOINT)
        executor.carry_out(_CHECKPOINT)
        executor.settled().result(timeout=20)
        assert len(posted) == 1
    finally:
        writer.answers.set()
        executor.close()
    assert len(posted) == 2
