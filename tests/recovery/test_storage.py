"""Checkpoint storage that fails, is full, gives wrong answers or is slow; damaged checkpoints."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.checkpoint.rules.failure_reason import (
    CheckpointFailedError,
    CheckpointFailureReason,
    TooManyFailedCheckpointsError,
)
from firesteel.checkpoint.storage.metadata_file import CorruptCheckpointError
from firesteel.checkpoint.storage.storage import CorruptFileError, open_storage
from firesteel.common import Configuration
from firesteel.common.job_status import JobStatus
from firesteel.datastream.connectors.file_system import RollingPolicy
from firesteel.errors import WriteFailedError
from firesteel.filesystems.file_systems import LocalFileSystem
from firesteel.testing import (
    FaultyFileSystem,
    JobHarness,
    StorageFault,
    StorageFaultKind,
    with_faults,
)
from tests.recovery.jobs import RESTARTS, Job, assert_exactly_once, golden

TOLERANT = Configuration(RESTARTS).set_string(
    "execution.checkpointing.tolerable-failed-checkpoints", "3"
)

METADATA, SEGMENTS = "*_metadata*", "*/shared/*"


def start(
    job: Job, tmp_path: Path, *faults: StorageFault, **more: Any
) -> tuple[JobHarness, FaultyFileSystem]:
    root = tmp_path / "checkpoints"
    root.mkdir()
    storage, file_system = with_faults(open_storage(str(root)), *faults)
    arguments = {"records_per_epoch": 3, "checkpoint_every": 2, "configuration": TOLERANT}
    arguments |= {"inline_threshold": 0, "storage": storage, "parallelism": 2}
    return JobHarness(job, **{**arguments, **more}), file_system


def run_epochs(harness: JobHarness, count: int) -> None:
    for _ in range(count):
        assert harness.run_epoch()


@pytest.mark.parametrize("calls", [(1,), (3,), (2, 3), (4, 5, 6)], ids=str)
@pytest.mark.parametrize(
    ("kind", "operation", "path"),
    [
        (StorageFaultKind.FAIL, "write", METADATA),
        (StorageFaultKind.FULL, "write", METADATA),
        (StorageFaultKind.LOST_ANSWER, "write", METADATA),
        (StorageFaultKind.FAIL, "rename", METADATA),
        (StorageFaultKind.LOST_ANSWER, "rename", METADATA),
        (StorageFaultKind.FAIL, "sync", METADATA),
        (StorageFaultKind.FAIL, "sync", SEGMENTS),
        (StorageFaultKind.FAIL, "write", SEGMENTS),
        (StorageFaultKind.FULL, "write", SEGMENTS),
        (StorageFaultKind.LOST_ANSWER, "rename", SEGMENTS),
        (StorageFaultKind.FAIL, "delete", "*"),
        (StorageFaultKind.FAIL, "list_files", "*"),
    ],
    ids=lambda value: value.name if isinstance(value, StorageFaultKind) else value,
)
def test_storage_that_fails_now_and_then(
    tmp_path: Path, kind: StorageFaultKind, operation: str, path: str, calls: tuple[int, ...]
) -> None:
    """With two crashes, so that what was stored is needed."""
    job = Job(tmp_path)
    faults = [StorageFault(kind, operation, path, call) for call in calls]
    harness, _ = start(job, tmp_path, *faults)
    for epochs in (9, 13):
        run_epochs(harness, epochs)
        harness.crash()
    harness.run()
    assert_exactly_once(job, harness)


def test_nothing_is_left_behind_by_checkpoints_that_failed(tmp_path: Path) -> None:
    job = Job(tmp_path)
    faults = [StorageFault(StorageFaultKind.FULL, "write", METADATA, call) for call in (2, 3)]
    harness, _ = start(job, tmp_path, *faults)
    run_epochs(harness, 12)
    left = [path for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()]
    assert len([path for path in left if path.name == "_metadata"]) == 1
    assert not [path for path in left if path.name.endswith(".tmp")]
    harness.run()
    assert not [path for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()]


def test_more_failures_in_a_row_than_are_tolerated_fail_the_job(tmp_path: Path) -> None:
    job = Job(tmp_path)
    never = Configuration(TOLERANT).set_string("restart-strategy.type", "none")
    harness, _ = start(
        job,
        tmp_path,
        StorageFault(StorageFaultKind.FAIL, "write", METADATA),
        configuration=never,
    )
    with pytest.raises(TooManyFailedCheckpointsError, match=r"4 checkpoints in a row.*_metadata"):
        harness.run()
    assert harness.epoch == 9
    assert job.outputs() == {"list": [], "files": [], "transactions": []}


def test_a_job_that_fails_of_its_checkpoints_recovers_with_its_storage(tmp_path: Path) -> None:
    job = Job(tmp_path)
    harness, file_system = start(job, tmp_path, configuration=RESTARTS)
    run_epochs(harness, 6)
    file_system.add(StorageFault(StorageFaultKind.FULL, "write", METADATA))
    run_epochs(harness, 6)
    file_system.heal()
    harness.run()
    assert_exactly_once(job, harness)


def test_state_that_cannot_be_written_names_operator_and_file(tmp_path: Path) -> None:
    never = Configuration(RESTARTS).set_string("restart-strategy.type", "none")
    harness, _ = start(
        Job(tmp_path),
        tmp_path,
        StorageFault(StorageFaultKind.FULL, "write", SEGMENTS, call=5),
        configuration=never,
    )
    with pytest.raises(
        WriteFailedError, match=r"'KEYED PROCESS'.*/shared/.*No space left"
    ) as error:
        harness.run()
    assert error.value.operator == "KEYED PROCESS"


def test_a_checkpoint_that_takes_too_long_is_given_up_and_what_comes_later_is_deleted(
    tmp_path: Path,
) -> None:
    job = Job(tmp_path)
    configuration = Configuration(TOLERANT).set_string("execution.checkpointing.timeout", "10 ms")
    harness, _ = start(job, tmp_path, configuration=configuration, checkpoint_every=0)
    run_epochs(harness, 2)
    harness.checkpoint()
    harness.storage_is_stuck = True
    with pytest.raises(
        CheckpointFailedError, match=r"after 0\.01 s it was still being written"
    ) as e:
        harness.checkpoint()
    assert e.value.reason is CheckpointFailureReason.CHECKPOINT_EXPIRED
    harness.storage_is_stuck = False
    run_epochs(harness, 1)
    assert [path.name for path in (tmp_path / "checkpoints").rglob("chk-*")] == ["chk-1"]
    harness.crash()
    harness.run()
    assert_exactly_once(job, harness)


@pytest.mark.parametrize("stop", [False, True], ids=["the last checkpoint", "a savepoint"])
def test_storage_that_never_answers_does_not_hold_a_job_up_forever(
    tmp_path: Path, stop: bool
) -> None:
    """Nothing else happens any more, so nothing else could notice that the time is over."""
    configuration = Configuration(RESTARTS).set_string("restart-strategy.type", "none")
    job = Job(tmp_path)
    harness, _ = start(job, tmp_path, configuration=configuration, checkpoint_every=0)
    if stop:
        run_epochs(harness, 3)
        harness.storage_is_stuck = True
        with pytest.raises(CheckpointFailedError, match="after 600 s"):
            harness.stop()
        harness.storage_is_stuck = False
        harness.run()
        assert_exactly_once(job, harness)
    else:
        harness.storage_is_stuck = True
        with pytest.raises(TooManyFailedCheckpointsError, match="after 600 s"):
            harness.run()
        assert job.outputs()["list"] == []


def test_slow_storage_does_not_hold_up_the_job(tmp_path: Path) -> None:
    """Epochs go on while a checkpoint is written, and it completes with what it was taken of."""
    job = Job(tmp_path)
    harness, _ = start(job, tmp_path, checkpoint_every=0)
    run_epochs(harness, 4)
    harness.storage_is_stuck = True
    answer = harness.request_checkpoint()
    run_epochs(harness, 5)
    assert not answer.done()
    harness.storage_is_stuck = False
    run_epochs(harness, 1)
    assert answer.done()
    seen = len(harness.collected)
    assert 0 < seen < len(golden()) / 2
    harness.crash()
    harness.run()
    assert_exactly_once(job, harness)


# Damage


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def damaged_job(
    tmp_path: Path, what: str, damage: Callable[[Path], None], policy: RollingPolicy | None = None
) -> tuple[Job, Any, str]:
    """A job with two checkpoints, of which the newer one is damaged; and what was damaged."""
    configuration = Configuration(TOLERANT).set_string("execution.checkpointing.num-retained", "2")
    job = Job(tmp_path) if policy is None else Job(tmp_path, rolling=policy)
    harness, _ = start(job, tmp_path, configuration=configuration, checkpoint_every=0)
    run_epochs(harness, 5)
    first = Path(harness.checkpoint())
    shared = first.parent / "shared"
    old = set(shared.iterdir())
    run_epochs(harness, 3)
    second = Path(harness.checkpoint())
    assert second.name == "chk-2"
    if what == "metadata":
        victim = second / "_metadata"
    else:
        victim = min(path for path in shared.iterdir() if path not in old)
    damage(victim)
    return job, harness, str(victim)


@pytest.mark.parametrize("damage", [truncate, flip_bit, Path.unlink])
@pytest.mark.parametrize("what", ["metadata", "state"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_restores(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str, damage: Callable[[Path], None]
) -> None:
    """A new driver. What the damaged checkpoint had committed comes again; the state is right."""
    job, harness, victim = damaged_job(tmp_path, what, damage)
    harness.kill()
    with caplog.at_level(logging.INFO, logger="firesteel"):
        resumed = harness.resume()
        resumed.run()
    if damage is not Path.unlink or what != "metadata":
        assert victim in caplog.text
    assert "chk-1" in caplog.text or "goes back to checkpoint 1" in caplog.text
    assert resumed.keyed_state() == clean_state(tmp_path)
    assert not Counter(golden()) - Counter(job.outputs()["list"])


@pytest.mark.parametrize("size", [1, 8, 1 << 20])
@pytest.mark.parametrize("same_driver", [False, True])
def test_files_that_stay_open_do_not_prevent_the_way_back(
    tmp_path: Path, same_driver: bool, size: int
) -> None:
    policy = RollingPolicy.default_rolling_policy(part_size=size)
    job, harness, _ = damaged_job(tmp_path, "state", flip_bit, policy)
    if same_driver:
        harness.crash()
    else:
        harness.kill()
        harness = harness.resume()
    harness.run()
    assert not Counter(golden()) - Counter(job.outputs()["files"])


def test_one_that_was_named_must_be_whole(tmp_path: Path) -> None:
    _, harness, victim = damaged_job(tmp_path, "state", flip_bit)
    harness.kill()
    newest = next((tmp_path / "checkpoints").rglob("chk-2"))
    resumed = harness.resume(str(newest))
    with pytest.raises(CorruptCheckpointError, match="checksum") as caught:
        resumed.run()
    assert caught.value.location == victim


@pytest.mark.parametrize("damage", [truncate, Path.unlink])
def test_files_of_a_wrong_size_are_found_when_it_is_named(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    _, harness, victim = damaged_job(tmp_path, "state", damage)
    harness.kill()
    newest = next((tmp_path / "checkpoints").rglob("chk-2"))
    with pytest.raises(CorruptCheckpointError) as caught:
        harness.resume(str(newest))
    assert caught.value.location == victim


def test_a_strategy_without_restarts_does_not_prevent_the_way_back(tmp_path: Path) -> None:
    job, harness, _ = damaged_job(tmp_path, "state", flip_bit)
    harness.kill()
    changes = Configuration().set_string("restart-strategy.type", "none")
    resumed = harness.resume(configuration=changes)
    resumed.run()
    assert resumed.keyed_state() == clean_state(tmp_path)
    assert not Counter(golden()) - Counter(job.outputs()["list"])


def test_the_driver_reads_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting from a checkpoint or savepoint, the driver reads metadata only."""
    harness, _ = start(Job(tmp_path), tmp_path, checkpoint_every=0)
    run_epochs(harness, 5)
    savepoint = harness.savepoint()
    checkpoint = harness.checkpoint()
    harness.kill()
    read: list[str] = []

    def note(method: str) -> None:
        before = getattr(LocalFileSystem, method)

        def noted(self: LocalFileSystem, path: str) -> Any:
            read.append(Path(path).name)
            return before(self, path)

        monkeypatch.setattr(LocalFileSystem, method, noted)

    note("read")
    note("open")
    for path in (savepoint, checkpoint):
        read.clear()
        resumed = harness.resume(path)
        assert set(read) == {"_metadata"}
        resumed.run_epoch()
        assert set(read) > {"_metadata"}
        resumed.kill()


def test_a_running_job_that_finds_its_checkpoint_damaged_goes_back_further(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It notices when a task cannot read its state; with a second failure it knows which file."""
    job, harness, victim = damaged_job(tmp_path, "state", flip_bit)
    harness.crash()
    harness.run()
    assert victim in caplog.text
    assert "goes back to checkpoint 1" in caplog.text
    assert harness.keyed_state() == clean_state(tmp_path)
    assert not Counter(golden()) - Counter(job.outputs()["list"])


def test_if_no_checkpoint_is_whole_the_job_fails_and_says_so(tmp_path: Path) -> None:
    _, harness, _ = damaged_job(tmp_path, "state", flip_bit)
    for segment in next((tmp_path / "checkpoints").rglob("shared")).iterdir():
        truncate(segment)
    harness.crash()
    with pytest.raises(CorruptFileError, match="is damaged"):
        harness.run()
    assert harness.status is JobStatus.FAILED


def clean_state(tmp_path: Path) -> dict[str, Any]:
    clean = JobHarness(Job(tmp_path / "clean"))
    clean.run()
    return clean.keyed_state()
