"""Jobs for the next leader: only those that the group itself wrote are run."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from firesteel.checkpoint.storage.storage import StorageError
from firesteel.dispatcher.job_store import JobStore
from firesteel.errors import LeadershipLostError
from firesteel.leader.file_leases import LeaseDirectory
from firesteel.leader.settings import LeaderSettings
from firesteel.protocol.submission import Manifest
from firesteel.version import __version__
from tests.leader.groups import file_settings

JOBS = ["aa" * 16, "bb" * 16, "cc" * 16]


def manifest(job_id: str, version: str = __version__) -> Manifest:
    return Manifest(
        job_id, f"job {job_id[:2]}", version, "3.12", "STREAMING", True, 1, False, {}, {}
    )


@pytest.fixture
def settings(tmp_path: Path) -> LeaderSettings:
    made = file_settings(tmp_path)
    LeaseDirectory(Path(made.directory)).create()
    return made


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    path = tmp_path / "submission.zip"
    path.write_bytes(b"program and files")
    return path


def store_of(settings: LeaderSettings, term: int = 0) -> JobStore:
    services = settings.open()
    return JobStore(settings, services, term)


def unfinished(store: JobStore) -> list[str]:
    return [job.job_id for job in store.unfinished()]


def test_the_next_leader_gets_the_jobs_of_the_last_one(settings, submission):
    store = store_of(settings)
    for job_id in JOBS:
        store.save(manifest(job_id), submission)
    LeaseDirectory(Path(settings.directory)).take_over(0)
    found = list(store_of(settings, 1).unfinished())
    assert [(job.job_id, job.submission) for job in found] == [
        (job_id, b"program and files") for job_id in JOBS
    ]
    with pytest.raises(LeadershipLostError):
        store.save(manifest("dd" * 16), submission)
    assert unfinished(store_of(settings, 1)) == JOBS


def test_a_job_that_has_ended_is_not_run_again(settings, submission):
    store = store_of(settings)
    for job_id in JOBS:
        store.save(manifest(job_id), submission)
    store.note_end(JOBS[0], "CANCELED")
    assert store.has_ended(JOBS[0])
    assert unfinished(store) == JOBS[1:]
    store.remove(JOBS[1])
    assert unfinished(store) == JOBS[2:]
    assert not list(Path(settings.directory).rglob(f"{JOBS[1]}.zip"))


def test_a_file_that_was_exchanged_is_named_and_not_run(settings, submission, caplog):
    store = store_of(settings)
    for job_id in JOBS:
        store.save(manifest(job_id), submission)
    [file] = Path(settings.directory).rglob(f"{JOBS[0]}.zip")
    file.write_bytes(b"something else")
    [entry] = Path(settings.directory).rglob(f"jobs/{JOBS[1]}.json")
    entry.write_text(entry.read_text().replace("job bb", "job bx"))
    with caplog.at_level(logging.ERROR, logger="firesteel"):
        assert unfinished(store) == [JOBS[2]]
    assert str(file) in caplog.text
    assert f"jobs/{JOBS[1]}" in caplog.text


def test_entries_of_a_group_with_a_different_key_are_not_run(settings, submission):
    store_of(replace(settings, key=b"different")).save(manifest(JOBS[0]), submission)
    assert unfinished(store_of(settings)) == []


def test_a_job_of_a_different_version_is_named_and_skipped(settings, submission, caplog):
    store = store_of(settings)
    store.save(manifest(JOBS[0], version="0.0.9"), submission)
    with caplog.at_level(logging.ERROR, logger="firesteel"):
        assert unfinished(store) == []
    assert "0.0.9" in caplog.text
    # It stays for a leader of its version.
    assert list(Path(settings.directory).rglob(f"{JOBS[0]}.zip"))


def test_a_job_is_not_skipped_because_the_storage_does_not_answer(settings, submission):
    store = store_of(settings)
    store.save(manifest(JOBS[0]), submission)
    [file] = Path(settings.directory).rglob(f"{JOBS[0]}.zip")
    file.unlink()
    assert unfinished(store) == []
    # It cannot be read as a file.
    file.mkdir()
    with pytest.raises(StorageError):
        unfinished(store)
