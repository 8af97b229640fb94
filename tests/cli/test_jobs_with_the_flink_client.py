"""Flink's own command line client works with a session of Firesteel's."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Commands
from tests.cli.test_session import COUNTING, wait_for_counts
from tests.servers.flink import FlinkCommands, why_not

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
]

UNKNOWN = "0" * 32


@pytest.fixture
def flink(session: Commands, tmp_path: Path) -> FlinkCommands:
    return FlinkCommands(session.address, tmp_path)


def test_every_action_of_flink_on_a_running_job(
    session: Commands, flink: FlinkCommands, write: Callable[..., Path], tmp_path: Path
) -> None:
    out = tmp_path / "counts"
    options = (
        "-Dexecution.checkpointing.interval=1 s",
        f"-Dexecution.checkpointing.dir={tmp_path}",
    )
    job_id = session.submit(write(COUNTING), *options, arguments=(str(out),))
    wait_for_counts(out, 2)

    listed = flink("list")
    assert re.search(rf"^[\d.]+ [\d:]+ : {job_id} : counting \(RUNNING\)$", listed, re.MULTILINE)

    taken = flink("savepoint", job_id, str(tmp_path / "savepoints"))
    found = re.search(r"^Savepoint completed. Path: (.*)$", taken, re.MULTILINE)
    assert found is not None
    savepoint = found[1]
    assert (Path(savepoint) / "_metadata").exists()
    assert "triggerId" in flink("savepoint", "-detached", job_id, str(tmp_path / "savepoints"))

    taken = flink("checkpoint", job_id)
    assert re.search(rf"^Checkpoint \d+ for job {job_id} completed\.$", taken, re.MULTILINE)

    # The client's own limit, 60 s by default, is a setting of the client.
    impatient = flink("savepoint", "-Dclient.timeout=1 ms", job_id, str(tmp_path), code=1)
    assert "TimeoutException" in impatient

    disposed = flink("savepoint", "-d", savepoint)
    assert f"Savepoint '{savepoint}' disposed." in disposed
    assert not Path(savepoint).exists()

    stopped = flink("stop", "-p", str(tmp_path / "stopped"), job_id)
    assert "Savepoint completed. Path: " in stopped
    session.wait_for_state(job_id, "FINISHED")
    assert job_id not in flink("list", "-r")
    assert f"{job_id} : counting (FINISHED)" in flink("list", "-a")

    # Errors come with their reason at once.
    assert "has already reached another terminal state" in flink("cancel", job_id, code=1)
    assert f"Job {UNKNOWN} not found" in flink("savepoint", UNKNOWN, str(tmp_path), code=1)


def test_cancel(
    session: Commands, flink: FlinkCommands, write: Callable[..., Path], tmp_path: Path
) -> None:
    job_id = session.submit(write(COUNTING), arguments=(str(tmp_path / "counts"),))
    session.wait_for_state(job_id, "RUNNING")
    assert f"Cancelled job {job_id}." in flink("cancel", job_id)
    session.wait_for_state(job_id, "CANCELED")
