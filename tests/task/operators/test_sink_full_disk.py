"""A full disk: the error names the writer and the path, and the job can continue."""

from __future__ import annotations

import copy
import errno
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.serialization import Encoder
from firesteel.connectors.files import committer, part_files
from firesteel.connectors.files.committer import FileCommitter
from firesteel.connectors.files.paths import FilePaths
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
from firesteel.errors import FiresteelError, WriteFailedError
from firesteel.filesystems import file_systems
from firesteel.protocol.execution import EpochPlan, EpochRows
from firesteel.testing import JobHarness, OperatorHarness
from tests.full_disk import FullDisk


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    return FullDisk(monkeypatch, part_files, committer, file_systems)


def file_sink(directory: Path) -> FileSink:
    return (
        FileSink.for_row_format(str(directory), Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )


def visible(directory: Path) -> list[str]:
    lines: list[str] = []
    for file in directory.rglob("*"):
        if file.is_file() and not file.name.startswith("."):
            lines += file.read_text().splitlines()
    return sorted(lines)


def hidden(directory: Path) -> list[str]:
    return [file.name for file in directory.rglob(".*") if file.is_file()]


class Epochs:
    """The epochs of a job, whose tasks can be run again after they failed."""

    def __init__(self, program: Any, **more: Any) -> None:
        self.harness = JobHarness(program, **more)
        self.plan: EpochPlan | None = None

    def attempt(self) -> EpochRows:
        if self.plan is None:
            self.plan = self.harness._runner._next_plan()
            assert self.plan is not None
        return self.harness._executor.slots.run_epoch(self.plan)

    def fails(self) -> FiresteelError:
        (failure,) = self.attempt().failures
        return failure.error

    def succeeds(self) -> None:
        rows = self.attempt()
        assert not rows.failures
        assert self.plan is not None
        self.harness._runner._take(self.plan, rows)
        self.plan = None


@pytest.mark.parametrize("free", [0, 5])
def test_a_file_sink_names_operator_and_path_and_goes_on_after_a_retry(disk, tmp_path, free):
    def program(env: Any) -> None:
        numbers = env.from_collection(range(100, 106))
        numbers.sink_to(file_sink(tmp_path)).name("archive")

    epochs = Epochs(program, records_per_epoch=3)
    epochs.succeeds()
    disk.free = free
    error = epochs.fails()
    assert isinstance(error, WriteFailedError)
    assert error.operator == "archive: Writer"
    assert Path(error.path).parent == tmp_path
    assert error.errno == errno.ENOSPC
    assert visible(tmp_path) == []
    disk.free = float("inf")
    epochs.succeeds()
    epochs.harness.run()
    assert visible(tmp_path) == [str(number) for number in range(100, 106)]
    assert hidden(tmp_path) == []


def test_a_file_sink_fails_the_same_way_when_it_finishes_a_restored_file(disk, tmp_path):
    """Then it copies the bytes that the snapshot contains."""

    def program(stream: Any) -> Any:
        return stream.sink_to(file_sink(tmp_path)).name("archive")

    with OperatorHarness.of(program) as harness:
        harness.process_elements(["a", "b"])
        snapshot = harness.snapshot()
    with OperatorHarness.restored(program, snapshot) as restored:
        restored.process_element("c")
        restored.finish()
        committables = copy.deepcopy(restored.committables)
        before = hidden(tmp_path)
        disk.free = 1
        with pytest.raises(WriteFailedError, match=r"'archive: Writer' could not write"):
            restored.commit()
        assert hidden(tmp_path) == before
    disk.free = float("inf")
    FileCommitter(FilePaths(())).commit(committables)
    assert visible(tmp_path) == ["a", "b", "c"]
    assert hidden(tmp_path) == []


def test_a_file_that_cannot_be_renamed_is_named_and_can_be_committed_later(tmp_path, monkeypatch):
    sink = file_sink(tmp_path)

    def program(stream: Any) -> Any:
        return stream.sink_to(sink).name("archive")

    with OperatorHarness.of(program) as harness:
        harness.process_elements(["a", "b"])
        harness.finish()
        committables = copy.deepcopy(harness.committables)

        def full(source: str, target: str) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", full)
            with pytest.raises(WriteFailedError) as caught:
                harness.commit()
    assert caught.value.operator == "archive: Writer"
    assert caught.value.path == committables[0]["final"]
    assert visible(tmp_path) == []
    FileCommitter(FilePaths(())).commit(committables)
    assert visible(tmp_path) == ["a", "b"]


def test_a_state_segment_names_operator_and_path_and_goes_on_after_a_retry(disk):
    def program(env: Any) -> Any:
        return env.from_collection(range(6)).key_by(lambda n: n % 2).reduce(lambda a, b: a + b)

    epochs = Epochs(program, records_per_epoch=3, inline_threshold=0)
    epochs.succeeds()
    files = epochs.harness.files()
    assert files
    disk.free = 3
    error = epochs.fails()
    assert isinstance(error, WriteFailedError)
    assert error.operator == "Reduce"
    assert Path(error.path).parent == files[0].parent
    assert epochs.harness.files() == files
    disk.free = float("inf")
    epochs.succeeds()
    epochs.harness.run()
    assert sorted(epochs.harness.collected) == [0, 1, 2, 4, 6, 9]


def test_the_error_says_what_to_do_and_travels():
    error = WriteFailedError("/data/x", errno.ENOSPC, "No space left on device", "Reduce")
    assert str(pickle.loads(pickle.dumps(error))) == (
        "Operator 'Reduce' could not write /data/x: No space left on device. Free some space "
        "there, or write to a different location."
    )
    assert pickle.loads(pickle.dumps(error)).errno == errno.ENOSPC
    assert isinstance(error, OSError)
