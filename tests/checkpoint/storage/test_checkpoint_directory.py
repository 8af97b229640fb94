"""Checkpoint directories on disks and object stores: written whole, deleted safely, discovered."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from firesteel.checkpoint.metadata import CheckpointMetadata, SubtaskState
from firesteel.checkpoint.rules.completed_checkpoint import CompletedCheckpoint
from firesteel.checkpoint.rules.decisions import CleanUp, DeleteCheckpoint
from firesteel.checkpoint.rules.settings import checkpoint_settings
from firesteel.checkpoint.storage.checkpoint_directory import (
    CheckpointDirectory,
    MemoryCheckpoints,
    StateSizeError,
    job_checkpoint_storage,
)
from firesteel.checkpoint.storage.discovery import find_checkpoint, find_latest_checkpoint
from firesteel.checkpoint.storage.metadata_file import (
    CheckpointNotFoundError,
    CorruptCheckpointError,
    read_metadata,
)
from firesteel.checkpoint.storage.storage import Storage, StorageError, open_storage
from firesteel.common import Configuration
from firesteel.errors import ConfigurationError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.state.changelog import Segment
from firesteel.testing import StorageFault, StorageFaultKind, with_faults
from tests.checkpoint.builders import file_segment, metadata, operator


def _checkpoint(
    job: Storage, number: int, *files: str, job_name: str = "a job"
) -> CheckpointMetadata:
    """Metadata of a checkpoint whose state is in files of the job's shared directory."""
    segments = tuple(file_segment(job, file, file.encode() * 10) for file in files)
    made = metadata(operator("count", SubtaskState(segments)), checkpoint_id=number)
    return replace(made, completion_time=number, job_name=job_name)


def _names(storage: Storage) -> list[str]:
    return [file.path for file in storage.list_files()]


class TestWriting:
    def test_a_checkpoint_is_its_metadata_and_the_files_it_refers_to(
        self, storage: Storage
    ) -> None:
        directory = CheckpointDirectory(storage, "job")
        made = _checkpoint(directory.job, 7, "a", "b")
        location = directory.write(made, tuple(made.files()))
        assert location == storage.location_of("job/chk-7")
        assert _names(storage) == ["job/chk-7/_metadata", "job/shared/a", "job/shared/b"]
        assert read_metadata(directory.job.at("chk-7")) == made

    @pytest.mark.parametrize("operation", ["write", "sync", "rename"])
    @pytest.mark.parametrize("kind", [StorageFaultKind.FAIL, StorageFaultKind.FULL])
    def test_one_that_cannot_be_written_leaves_nothing(
        self, local: Storage, operation: str, kind: StorageFaultKind
    ) -> None:
        made = _checkpoint(local.at("job"), 7, "a")
        faulty, file_system = with_faults(local, StorageFault(kind, operation, "*_metadata*"))
        directory = CheckpointDirectory(faulty, "job")
        with pytest.raises(StorageError, match="_metadata"):
            directory.write(made, ())
        assert _names(local) == ["job/shared/a"]
        assert not (Path(local.root) / "job" / "chk-7").exists()
        file_system.heal()
        assert directory.write(made, ()) is not None

    def test_an_answer_that_was_lost_leaves_nothing_either(self, local: Storage) -> None:
        faulty, _ = with_faults(
            local, StorageFault(StorageFaultKind.LOST_ANSWER, "rename", "*_metadata")
        )
        with pytest.raises(StorageError, match="timed out"):
            CheckpointDirectory(faulty, "job").write(_checkpoint(local.at("job"), 7), ())
        assert _names(local) == []

    def test_new_files_are_on_disk_before_the_metadata(self, local: Storage) -> None:
        faulty, file_system = with_faults(local)
        made = _checkpoint(faulty.at("job"), 7, "a")
        file_system.calls.clear()
        CheckpointDirectory(faulty, "job").write(made, tuple(made.files()))
        first = file_system.calls[0]
        assert first == ("sync", f"{local.root}/job/shared/a")

    def test_a_file_that_cannot_be_synced_fails_the_checkpoint(self, local: Storage) -> None:
        faulty, _ = with_faults(local, StorageFault(StorageFaultKind.FAIL, "sync", "*/shared/*"))
        made = _checkpoint(local.at("job"), 7, "a")
        with pytest.raises(StorageError, match="cannot sync"):
            CheckpointDirectory(faulty, "job").write(made, tuple(made.files()))
        assert _names(local) == ["job/shared/a"]


class TestDeleting:
    def test_the_directory_and_the_files(self, storage: Storage) -> None:
        directory = CheckpointDirectory(storage, "job")
        made = _checkpoint(directory.job, 7, "a", "b")
        location = directory.write(made, ())
        (first, second) = sorted(made.files())
        directory.delete(DeleteCheckpoint(location, (first,)))
        assert _names(storage) == ["job/shared/b"]
        directory.delete(DeleteCheckpoint(location, (first, second)))
        assert _names(storage) == []

    def test_what_others_put_there_stays(self, local: Storage) -> None:
        directory = CheckpointDirectory(local, "job")
        location = directory.write(_checkpoint(directory.job, 7), ())
        local.write("job/chk-7/notes.txt", b"mine")
        directory.delete(DeleteCheckpoint(location))
        assert _names(local) == ["job/chk-7/notes.txt"]

    def test_what_cannot_be_deleted_is_logged(
        self, local: Storage, caplog: pytest.LogCaptureFixture
    ) -> None:
        faulty, _ = with_faults(local, StorageFault(StorageFaultKind.FAIL, "delete*"))
        directory = CheckpointDirectory(faulty, "job")
        made = _checkpoint(directory.job, 7, "a")
        location = directory.write(made, ())
        with caplog.at_level(logging.WARNING, "firesteel"):
            directory.delete(DeleteCheckpoint(location, tuple(made.files())))
        assert "cannot delete" in caplog.text

    def test_files_of_a_claimed_checkpoint_lie_elsewhere(
        self, s3: FileSystemOptions, local: Storage
    ) -> None:
        elsewhere = open_storage("s3://checkpoints/claimed", s3)
        claimed = CheckpointDirectory(elsewhere, "old", s3)
        made = _checkpoint(claimed.job, 3, "a")
        location = claimed.write(made, ())
        CheckpointDirectory(local, "job", s3).delete(
            DeleteCheckpoint(location, tuple(made.files()))
        )
        assert _names(elsewhere) == []


class TestCleaningUp:
    def test_what_unused_attempts_wrote_goes(self, storage: Storage) -> None:
        directory = CheckpointDirectory(storage, "job")
        made = _checkpoint(directory.job, 7, "a", "b")
        location = directory.write(made, ())
        file_segment(directory.job, "zombie")
        directory.write(_checkpoint(directory.job, 6), ())
        deleted = directory.clean_up(CleanUp((CompletedCheckpoint(made, location),)))
        assert deleted == ["chk-6/_metadata", "shared/zombie"]
        assert _names(directory.job) == ["chk-7/_metadata", "shared/a", "shared/b"]

    def test_without_a_retained_checkpoint_nothing_is_left(self, storage: Storage) -> None:
        directory = CheckpointDirectory(storage, "job")
        directory.write(_checkpoint(directory.job, 7, "a"), ())
        storage.write("other-job/chk-1/_metadata", b"x")
        directory.clean_up(CleanUp(()))
        assert _names(storage) == ["other-job/chk-1/_metadata"]
        assert directory.clean_up(CleanUp(())) == []


def test_which_checkpoints_new_ones_may_build_on(local: Storage) -> None:
    here, elsewhere = CheckpointDirectory(local, "job"), CheckpointDirectory(local, "other")
    inline = CompletedCheckpoint(metadata(), None)
    own = CompletedCheckpoint(_checkpoint(here.job, 1, "a"), here.job.at("chk-1").location)
    assert [here.holds(own), elsewhere.holds(own), elsewhere.holds(inline)] == [True, False, True]
    assert [MemoryCheckpoints(1).holds(one) for one in (own, inline)] == [False, True]


class TestMemory:
    def test_small_state_is_kept_without_any_file(self) -> None:
        kept = MemoryCheckpoints(max_state_size=100)
        state = SubtaskState((Segment(1, True, 100, inline=b"x" * 100),))
        assert kept.write(metadata(operator("count", state)), ()) is None
        assert kept.shared is None
        kept.delete(DeleteCheckpoint(None))
        assert kept.clean_up(CleanUp(())) == []

    def test_large_state_is_refused_with_advice(self) -> None:
        state = SubtaskState((Segment(1, True, 101, inline=b"x" * 101),))
        made = metadata(operator("count", SubtaskState(), state))
        with pytest.raises(
            StateSizeError,
            match=r"'count', subtask 1, has 101 bytes, .* at most 100 .*execution.checkpointing.dir",
        ):
            MemoryCheckpoints(max_state_size=100).write(made, ())

    def test_with_a_directory_they_outlive_the_driver(self, local: Storage) -> None:
        kept = MemoryCheckpoints(1000, CheckpointDirectory(local, "job"))
        state = SubtaskState((Segment(1, True, 5, inline=b"state"),))
        made = metadata(operator("count", state), checkpoint_id=3)
        assert kept.write(made, ()) == local.location_of("job/chk-3")
        assert read_metadata(local.at("job/chk-3")) == made


class TestConfiguration:
    def test_the_storage(self, tmp_path: Path, s3: FileSystemOptions) -> None:
        files = {"execution.checkpointing.dir": str(tmp_path)}
        storage = job_checkpoint_storage(Configuration.from_dict(files), "j")
        assert storage.shared is not None
        assert storage.shared.location == str(tmp_path / "j" / "shared")
        store = {
            "execution.checkpointing.dir": "s3://checkpoints/configured",
            "s3.access-key": "test",
            "s3.secret-key": "secret",
            "s3.endpoint": s3.s3_endpoint,
            "s3.endpoint.region": "us-east-1",
            "s3.path.style.access": True,
        }
        remote = job_checkpoint_storage(Configuration.from_dict(store), "j")
        location = remote.write(metadata(), ())
        assert location == "s3://checkpoints/configured/j/chk-7"
        assert open_storage(location, s3).exists("_metadata")
        assert isinstance(job_checkpoint_storage(Configuration(), "j"), MemoryCheckpoints)

    def test_the_settings_of_the_coordinator(self) -> None:
        settings = checkpoint_settings(
            Configuration.from_dict(
                {
                    "execution.checkpointing.interval": "10 s",
                    "execution.checkpointing.min-pause": "500 ms",
                    "execution.checkpointing.num-retained": 3,
                    "web.checkpoints.history": 5,
                }
            )
        )
        assert (settings.interval, settings.min_pause, settings.timeout) == (10.0, 0.5, 600.0)
        assert (settings.retained, settings.history_size, settings.max_concurrent) == (3, 5, 1)
        assert checkpoint_settings(Configuration()).interval is None

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("interval", "9 ms"),
            ("timeout", "1 ms"),
            ("max-concurrent-checkpoints", 0),
            ("tolerable-failed-checkpoints", -1),
            ("num-retained", 0),
        ],
    )
    def test_impossible_settings_are_named(self, key: str, value: object) -> None:
        configuration = Configuration.from_dict({f"execution.checkpointing.{key}": value})
        with pytest.raises(ConfigurationError, match=f"{key} must be at least .*, got {value}"):
            checkpoint_settings(configuration)


class TestFinding:
    def test_the_newest_of_a_job(self, storage: Storage) -> None:
        directory = CheckpointDirectory(storage, "job")
        for number in (2, 10, 9):
            directory.write(_checkpoint(directory.job, number, f"file-{number}"), ())
        found = find_latest_checkpoint(directory.job)
        assert found.checkpoint.checkpoint_id == 10
        assert not found.checkpoint.is_owned
        assert found.message == f"Restoring from checkpoint 10 at {directory.job.location}/chk-10."

    @pytest.mark.parametrize("damaged", ["chk-3/_metadata", "shared/file-3"])
    @pytest.mark.parametrize("damage", ["truncated", "bit flipped", "missing"])
    def test_a_damaged_one_is_named_and_the_one_before_taken(
        self, storage: Storage, damaged: str, damage: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        directory = CheckpointDirectory(storage, "job")
        for number in (1, 2, 3):
            directory.write(_checkpoint(directory.job, number, "common", f"file-{number}"), ())
        content = directory.job.read(damaged)
        if damage == "missing":
            directory.job.delete(damaged)
        else:
            middle = len(content) // 2
            flipped = content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]
            directory.job.write(damaged, content[:middle] if damage == "truncated" else flipped)
        with caplog.at_level(logging.WARNING, "firesteel"):
            found = find_latest_checkpoint(directory.job)
        assert found.checkpoint.checkpoint_id == 2
        if (damaged, damage) == ("chk-3/_metadata", "missing"):
            assert found.skipped == ()
            return
        (error,) = found.skipped
        assert error.location == directory.job.location_of(damaged)
        assert "It is not the newest: a newer one is damaged" in caplog.text
        assert damaged in caplog.text

    def test_if_none_is_whole_that_is_said(self, local: Storage) -> None:
        directory = CheckpointDirectory(local, "job")
        for number in (1, 2):
            directory.write(_checkpoint(directory.job, number, "common"), ())
        directory.job.delete("shared/common")
        with pytest.raises(CorruptCheckpointError, match=r"no checkpoint in it is intact.*common"):
            find_latest_checkpoint(directory.job)

    def test_among_several_jobs_by_name_and_age(self, local: Storage) -> None:
        for job, number, name in (("j1", 50, "mine"), ("j2", 60, "mine"), ("j3", 70, "other")):
            directory = CheckpointDirectory(local, job)
            directory.write(_checkpoint(directory.job, number, job_name=name), ())
        assert find_latest_checkpoint(local).checkpoint.checkpoint_id == 70
        found = find_checkpoint(local.location, job_name="mine")
        assert found.checkpoint.checkpoint_id == 60
        with pytest.raises(CheckpointNotFoundError, match="of a job 'nobody'"):
            find_latest_checkpoint(local, job_name="nobody")

    def test_one_that_was_named_must_be_whole(self, local: Storage) -> None:
        directory = CheckpointDirectory(local, "job")
        for number in (1, 2):
            directory.write(_checkpoint(directory.job, number, f"file-{number}"), ())
        for path in ("job/chk-2", "job/chk-2/", "job/chk-2/_metadata"):
            assert find_checkpoint(local.location_of(path)).checkpoint.checkpoint_id == 2
        directory.job.delete("shared/file-2")
        with pytest.raises(CorruptCheckpointError, match=r"file-2 is damaged: it does not exist"):
            find_checkpoint(local.location_of("job/chk-2"))

    def test_sizes_alone_find_a_truncated_file(self, local: Storage) -> None:
        directory = CheckpointDirectory(local, "job")
        directory.write(_checkpoint(directory.job, 1, "a"), ())
        found = find_latest_checkpoint(directory.job, deep=False)
        assert found.checkpoint.checkpoint_id == 1
        directory.job.write("shared/a", b"a")
        with pytest.raises(CorruptCheckpointError, match="should have 10 bytes, but it has 1"):
            find_latest_checkpoint(directory.job, deep=False)

    def test_where_nothing_is(self, storage: Storage) -> None:
        with pytest.raises(CheckpointNotFoundError, match="nor a directory chk-<number>"):
            find_latest_checkpoint(storage)
