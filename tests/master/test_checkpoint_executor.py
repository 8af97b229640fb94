"""The threads that write checkpoints: an error that nobody expects there fails the job."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.checkpoint.metadata import CheckpointMetadata, SnapshotType
from firesteel.checkpoint.rules.decisions import WriteSnapshot
from firesteel.checkpoint.rules.requests import SnapshotRequest
from firesteel.errors import LeadershipLostError
from firesteel.master.checkpoint_executor import CheckpointExecutor
from firesteel.master.edge import SingleThread
from firesteel.master.job_master import Raised

_METADATA = CheckpointMetadata(1, SnapshotType.CHECKPOINT, "job", "job", 1, 0, 0, ())


class _Writer:
    def __init__(self, error: BaseException) -> None:
        self._error = error

    def write(self, order: WriteSnapshot) -> Any:
        raise self._error


@pytest.mark.parametrize(
    "request_",
    [None, SnapshotRequest("request", SnapshotType.SAVEPOINT, "/savepoints/savepoint-1")],
    ids=["checkpoint", "savepoint"],
)
@pytest.mark.parametrize("error", [LeadershipLostError(7, "term 8 has begun"), SystemExit(1)])
def test_an_error_that_the_work_does_not_handle_fails_the_job(
    error: BaseException, request_: SnapshotRequest | None
) -> None:
    posted: list[Any] = []
    executor = CheckpointExecutor(
        _Writer(error),  # type: ignore[arg-type]  # only writes
        SingleThread("checkpoints"),
        SingleThread("savepoints"),
        posted.append,
    )
    executor.carry_out(WriteSnapshot(_METADATA, request_))
    executor.close()
    (event,) = posted
    assert isinstance(event, Raised)
    assert event.error is error
