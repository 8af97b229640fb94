"""Slots write savepoints while they work on, and leave nothing of those that are given up."""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.checkpoint.rules.failure_reason import CheckpointFailedError
from firesteel.checkpoint.rules.requests import StopMode
from firesteel.checkpoint.savepoints.description import show_snapshot
from firesteel.checkpoint.savepoints.savepoint_reader import open_state
from firesteel.checkpoint.storage.metadata_file import open_checkpoint
from firesteel.checkpoint.storage.storage import Storage, open_storage
from firesteel.common import Configuration, Types
from firesteel.common.job_status import JobStatus
from firesteel.filesystems.file_systems import FileSystemOptions, LocalFileSystem
from firesteel.protocol.messages import SavepointOrder
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.task.state import savepoint_writing
from firesteel.task.state.savepoint_writing import FrozenOperator, SlotSavepoints
from firesteel.testing import Fault, JobHarness
from tests.recovery.jobs import RESTARTS

NUMBERS = 400


def program(env: Any) -> Any:
    numbers = env.from_collection(list(range(NUMBERS)), Types.INT())
    return numbers.key_by(lambda n: n % 7, Types.INT()).reduce(lambda a, b: a + b).uid("sums")


@pytest.fixture(params=["micro-batch", "real-time"])
def execution(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def start(execution: str) -> Callable[..., JobHarness]:
    def start(**more: Any) -> JobHarness:
        configuration = Configuration(RESTARTS).set_string("firesteel.execution", execution)
        arguments = {"parallelism": 2, "records_per_epoch": 5, "checkpoint_every": 0, **more}
        configuration.add_all(arguments.pop("configuration", Configuration()))
        return JobHarness(program, configuration=configuration, **arguments)

    return start


def sums(location: str) -> dict[Any, Any]:
    state = open_state(location, "sums", "reduce")
    return {entry.key: entry.value for entry in state.entries()}


def run(harness: JobHarness, epochs: int) -> None:
    for _ in range(epochs):
        assert harness.run_epoch()


def expected() -> dict[int, int]:
    return {key: sum(range(key, NUMBERS, 7)) for key in range(7)}


def finish(harness: JobHarness) -> None:
    harness.run()
    assert harness.keyed_state()["sums"]["reduce"] == expected()


class TestSavepoint:
    def test_it_has_the_state_of_its_barrier_however_late_it_is_written(
        self, start: Callable[..., JobHarness], tmp_path: Path
    ) -> None:
        harness = start()
        run(harness, 3)
        harness.savepoints_are_stuck = True
        answer = harness.request_savepoint(str(tmp_path))
        run(harness, 1)
        state = dict(harness.keyed_state()["sums"]["reduce"])
        run(harness, 5)
        assert not answer.done()
        assert harness.keyed_state()["sums"]["reduce"] != state
        harness.savepoints_are_stuck = False
        run(harness, 1)
        assert sums(answer.result(timeout=0)) == state
        finish(harness)

    def test_checkpoints_do_not_wait_for_it(
        self, start: Callable[..., JobHarness], tmp_path: Path
    ) -> None:
        """Neither for its files nor for the thread of the driver that completes it."""
        interval = Configuration().set_string("execution.checkpointing.interval", "10 ms")
        harness = start(configuration=interval)
        harness.savepoints_are_stuck = True
        answer = harness.request_savepoint(str(tmp_path))
        run(harness, 1)
        before = harness._runner.checkpoint_overview()["counts"]["completed"]
        run(harness, 40)
        after = harness._runner.checkpoint_overview()["counts"]["completed"]
        assert after - before > 2
        assert not answer.done()
        harness.savepoints_are_stuck = False
        run(harness, 1)
        assert answer.done()

    def test_it_can_be_restored_with_any_parallelism(
        self, start: Callable[..., JobHarness]
    ) -> None:
        harness = start(parallelism=3)
        run(harness, 4)
        savepoint = harness.savepoint()
        for parallelism in (1, 2, 5):
            finish(harness.resume(savepoint, parallelism=parallelism))

    def test_several_can_be_written_at_once(
        self, start: Callable[..., JobHarness], tmp_path: Path
    ) -> None:
        harness = start()
        harness.savepoints_are_stuck = True
        answers, states = [], []
        for _ in range(3):
            answers.append(harness.request_savepoint(str(tmp_path)))
            run(harness, 1)
            states.append(dict(harness.keyed_state()["sums"]["reduce"]))
        harness.savepoints_are_stuck = False
        run(harness, 1)
        assert [sums(answer.result(timeout=0)) for answer in answers] == states

    def test_a_job_that_finishes_waits_for_it(
        self, start: Callable[..., JobHarness], tmp_path: Path
    ) -> None:
        harness = start(records_per_epoch=NUMBERS)
        harness.savepoints_are_stuck = True
        answer = harness.request_savepoint(str(tmp_path))
        run(harness, 3)
        assert harness.status is JobStatus.RUNNING
        harness.savepoints_are_stuck = False
        finish(harness)
        assert sums(answer.result(timeout=0))


ROCKSDB = Configuration().set_string("state.backend.type", "rocksdb")


class TestNative:
    """Savepoints that consist of the files of the state backend."""

    def test_it_has_the_state_of_its_barrier_however_late_it_is_written(
        self, start: Callable[..., JobHarness], tmp_path: Path
    ) -> None:
        harness = start(configuration=ROCKSDB)
        run(harness, 3)
        harness.savepoints_are_stuck = True
        answer = harness.request_savepoint(str(tmp_path), native=True)
        run(harness, 1)
        state = dict(harness.keyed_state()["sums"]["reduce"])
        run(harness, 5)
        assert not answer.done()
        assert harness.keyed_state()["sums"]["reduce"] != state
        harness.savepoints_are_stuck = False
        run(harness, 1)
        location = answer.result(timeout=0)
        assert sums(location) == state
        assert show_snapshot(location).format == "native"
        assert list(Path(location).glob("state-*.sst"))
        finish(harness)

    def test_it_can_be_restored_with_any_parallelism(
        self, start: Callable[..., JobHarness]
    ) -> None:
        harness = start(parallelism=3, configuration=ROCKSDB)
        run(harness, 4)
        savepoint = harness.savepoint(native=True)
        for parallelism in (1, 2, 3, 5):
            finish(harness.resume(savepoint, parallelism=parallelism))

    def test_it_can_be_moved_and_needs_nothing_of_the_job(
        self, start: Callable[..., JobHarness], tmp_path: Path
    ) -> None:
        checkpoints = Configuration().set_string(
            "execution.checkpointing.dir", str(tmp_path / "checkpoints")
        )
        checkpoints.add_all(ROCKSDB)
        harness = start(configuration=checkpoints, checkpoint_every=1)
        run(harness, 4)
        savepoint = Path(harness.stop(str(tmp_path / "savepoints"), native=True))
        moved = savepoint.rename(tmp_path / "moved")
        shutil.rmtree(tmp_path / "checkpoints", ignore_errors=True)
        resumed = harness.resume(str(moved))
        finish(resumed)
        # It belongs to the user, also after the job has taken checkpoints of its own.
        assert show_snapshot(str(moved)).defects == ()
        finish(harness.resume(str(moved), parallelism=1))

    def test_the_error_of_a_different_backend_says_what_to_do(
        self, start: Callable[..., JobHarness]
    ) -> None:
        harness = start(configuration=ROCKSDB)
        run(harness, 3)
        native, canonical = harness.savepoint(native=True), harness.savepoint()
        hashmap = Configuration().set_string("state.backend.type", "hashmap")
        resumed = harness.resume(native, configuration=hashmap)
        with pytest.raises(Exception, match="restore a canonical savepoint"):
            resumed.run()
        finish(harness.resume(canonical, configuration=hashmap))

    def test_state_in_memory_has_no_files_so_it_is_canonical(
        self, start: Callable[..., JobHarness]
    ) -> None:
        harness = start()
        run(harness, 3)
        savepoint = harness.savepoint(native=True)
        assert show_snapshot(savepoint).format == "canonical"
        finish(harness.resume(savepoint, configuration=ROCKSDB))

    def test_one_that_is_given_up_leaves_nothing(
        self, start: Callable[..., JobHarness], tmp_path: Path
    ) -> None:
        harness = start(configuration=ROCKSDB)
        run(harness, 3)
        harness.savepoints_are_stuck = True
        answer = harness.request_savepoint(str(tmp_path), native=True)
        run(harness, 2)
        # One of the slots has written its files.
        assert harness.write_savepoint_file()
        assert list(tmp_path.rglob("state-*"))
        harness.run_epoch(dict.fromkeys(harness.places(), Fault.LOSE_HOST))
        harness.savepoints_are_stuck = False
        with pytest.raises(CheckpointFailedError, match="was restarted while it wrote its state"):
            answer.result(timeout=0)
        run(harness, 1)
        assert list(tmp_path.iterdir()) == []
        finish(harness)

    @pytest.mark.parametrize("stop", [None, StopMode.SUSPEND])
    def test_a_disk_that_is_full(
        self,
        start: Callable[..., JobHarness],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        stop: StopMode | None,
    ) -> None:
        monkeypatch.setattr(savepoint_writing, "open_storage", full_disk)
        harness = start(configuration=ROCKSDB)
        run(harness, 3)
        answer = harness.request_savepoint(str(tmp_path), stop, native=True)
        run(harness, 2)
        with pytest.raises(CheckpointFailedError, match="No space left on device"):
            answer.result(timeout=0)
        assert list(tmp_path.iterdir()) == []
        finish(harness)


class TestGivingUp:
    """The savepoint fails, its directory is gone, and the job goes on as if nothing had happened."""

    def stuck(self, harness: JobHarness, directory: Path) -> Any:
        run(harness, 3)
        harness.savepoints_are_stuck = True
        answer = harness.request_savepoint(str(directory))
        run(harness, 2)
        # One of the slots has written a file.
        assert harness.write_savepoint_file()
        assert list(directory.rglob("state-*"))
        return answer

    @pytest.mark.parametrize("fault", [Fault.LOSE_HOST, Fault.LOSE_HOST_LATE, Fault.BREAK_OFF])
    def test_a_slot_that_dies(
        self, start: Callable[..., JobHarness], tmp_path: Path, fault: Fault
    ) -> None:
        harness = start()
        harness.checkpoint()
        answer = self.stuck(harness, tmp_path)
        harness.run_epoch(dict.fromkeys(harness.places(), fault))
        harness.savepoints_are_stuck = False
        with pytest.raises(CheckpointFailedError, match="was restarted while it wrote its state"):
            answer.result(timeout=0)
        run(harness, 1)
        assert list(tmp_path.iterdir()) == []
        finish(harness)

    def test_a_job_that_restarts(self, start: Callable[..., JobHarness], tmp_path: Path) -> None:
        harness = start()
        harness.checkpoint()
        answer = self.stuck(harness, tmp_path)
        harness.crash()
        harness.savepoints_are_stuck = False
        assert isinstance(answer.exception(timeout=0), CheckpointFailedError)
        run(harness, 1)
        assert list(tmp_path.iterdir()) == []
        finish(harness)

    def test_one_that_takes_too_long(
        self, start: Callable[..., JobHarness], tmp_path: Path
    ) -> None:
        timeout = Configuration().set_string("execution.checkpointing.timeout", "60 s")
        harness = start(configuration=timeout)
        answer = self.stuck(harness, tmp_path)
        harness.let_pass(61.0)
        run(harness, 2)
        with pytest.raises(CheckpointFailedError, match="still being written"):
            answer.result(timeout=0)
        # The slots have stopped as well: nothing comes after the directory was deleted.
        harness.savepoints_are_stuck = False
        run(harness, 1)
        assert list(tmp_path.iterdir()) == []
        finish(harness)

    def test_a_job_that_is_canceled(self, start: Callable[..., JobHarness], tmp_path: Path) -> None:
        harness = start()
        answer = self.stuck(harness, tmp_path)
        harness.cancel()
        harness.run_epoch()
        harness.savepoints_are_stuck = False
        harness._edge.work()
        assert isinstance(answer.exception(timeout=0), CheckpointFailedError)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("stop", [None, StopMode.SUSPEND])
    def test_a_disk_that_is_full(
        self,
        start: Callable[..., JobHarness],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        stop: StopMode | None,
    ) -> None:
        monkeypatch.setattr(savepoint_writing, "open_storage", full_disk)
        harness = start()
        run(harness, 3)
        answer = harness.request_savepoint(str(tmp_path), stop)
        run(harness, 2)
        with pytest.raises(CheckpointFailedError, match="No space left on device"):
            answer.result(timeout=0)
        assert list(tmp_path.iterdir()) == []
        finish(harness)

    def test_files_that_the_driver_does_not_find(
        self, start: Callable[..., JobHarness], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The slots have a disk of their own, which the driver does not see."""

        def own_disk(location: str, options: FileSystemOptions | None = None) -> Storage:
            found = open_storage(location, options)
            elsewhere = location.replace(str(tmp_path / "driver"), str(tmp_path / "slot"))
            return Storage(found.file_system, elsewhere, location)

        monkeypatch.setattr(savepoint_writing, "open_storage", own_disk)
        harness = start()
        run(harness, 2)
        answer = harness.request_savepoint(str(tmp_path / "driver"))
        run(harness, 2)
        with pytest.raises(CheckpointFailedError, match="driver and slots share"):
            answer.result(timeout=0)
        finish(harness)


class _FullDisk(LocalFileSystem):
    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        super().write(path, chunks)
        raise OSError(errno.ENOSPC, "No space left on device")


def full_disk(location: str, options: FileSystemOptions | None = None) -> Storage:
    found = open_storage(location, options)
    return Storage(_FullDisk(), found.root, found.location)


class TestThreads:
    """A slot's own threads, with storage that hangs."""

    @pytest.fixture
    def storage(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[_HangingDisk]:
        disk = _HangingDisk()

        def opened(location: str, options: FileSystemOptions | None = None) -> Storage:
            found = open_storage(location, options)
            return Storage(disk, found.root, found.location)

        monkeypatch.setattr(savepoint_writing, "open_storage", opened)
        monkeypatch.setattr(savepoint_writing, "_PATIENCE_SECONDS", 0.01)
        yield disk
        disk.goes_on.set()

    def begin(self, target: Path) -> SlotSavepoints:
        backend = HashMapKeyedStateBackend()
        for key in range(100):
            backend.value_table("numbers").put(key, key)
        backend.confirm()
        savepoints = SlotSavepoints(None)
        operator = FrozenOperator(1, 0, 2, "operator", None, backend.freeze(128))
        savepoints.begin(SavepointOrder(7, str(target)), [operator])
        return savepoints

    def wait_for_threads(self) -> None:
        for thread in threading.enumerate():
            if thread.name == "firesteel-savepoint":
                thread.join(10.0)

    def test_the_end_is_reported_once(self, storage: _HangingDisk, tmp_path: Path) -> None:
        savepoints = self.begin(tmp_path / "s")
        assert storage.hangs.wait(10.0)
        assert savepoints.is_busy
        assert savepoints.progress()[7].files is None
        storage.goes_on.set()
        self.wait_for_threads()
        assert savepoints.has_news
        (written,) = savepoints.progress()[7].files or ()
        assert [file.entries for file in written.files] == [{"numbers": 100}]
        savepoints.confirm()
        assert savepoints.progress() == {}
        # The files belong to the driver now.
        savepoints.abandon()
        assert list((tmp_path / "s").iterdir())

    @pytest.mark.parametrize("aborted", [True, False])
    def test_storage_that_hangs_does_not_hold_up_the_slot(
        self, storage: _HangingDisk, tmp_path: Path, aborted: bool
    ) -> None:
        savepoints = self.begin(tmp_path / "s")
        assert storage.hangs.wait(10.0)
        if aborted:
            savepoints.abort([7])
        else:
            savepoints.abandon()
        assert savepoints.progress() == {}
        storage.goes_on.set()
        self.wait_for_threads()
        assert not list(tmp_path.rglob("state-*"))
        # A slot that starts over may share the directory with its successor.
        assert (tmp_path / "s").exists() is not aborted

    def test_a_slot_that_waits_gives_up_in_time(self, tmp_path: Path) -> None:
        backend = HashMapKeyedStateBackend()
        backend.value_table("numbers").put(1, 1)
        backend.confirm()
        savepoints = SlotSavepoints(None)
        operator = FrozenOperator(1, 0, 2, "operator", None, backend.freeze(128))
        order = SavepointOrder(7, str(tmp_path / "s"), waits=True, seconds=-1.0)
        savepoints.begin(order, [operator])
        assert "has not written it within" in (savepoints.progress()[7].error or "")
        assert not list(tmp_path.rglob("state-*"))


class _HangingDisk(LocalFileSystem):
    def __init__(self) -> None:
        super().__init__()
        self.hangs = threading.Event()
        self.goes_on = threading.Event()

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        def hanging() -> Iterator[bytes]:
            for chunk in chunks:
                self.hangs.set()
                self.goes_on.wait(30.0)
                yield chunk

        super().write(path, hanging())


def test_strays_are_deleted_when_it_is_complete(tmp_path: Path) -> None:
    """An attempt of a task that does not count leaves its files."""
    harness = JobHarness(program, parallelism=2, records_per_epoch=5, checkpoint_every=0)
    run(harness, 2)
    harness.savepoints_are_stuck = True
    answer = harness.request_savepoint(str(tmp_path))
    run(harness, 1)
    assert harness.write_savepoint_file()
    (directory,) = tmp_path.iterdir()
    (directory / "state-of-nobody-0").write_bytes(b"x")
    harness.savepoints_are_stuck = False
    run(harness, 1)
    _, metadata = open_checkpoint(answer.result(timeout=0))
    names = {Path(file).name for file in metadata.files()}
    assert {path.name for path in directory.iterdir()} == {"_metadata", *names}
