"""Leases in a directory: atomic takeovers, damaged leases, and a disk that refuses writes."""

from __future__ import annotations

import errno
import json
import logging
import threading
from pathlib import Path

import pytest

from firesteel.errors import LeadershipLostError
from firesteel.leader.file_leases import FileStore, LeaseDirectory
from firesteel.leader.lease_election import Lease
from firesteel.leader.leases import encode_lease
from tests.leader.candidates import Candidate
from tests.leader.groups import file_settings
from tests.waiting import wait_until


@pytest.fixture
def directory(tmp_path: Path) -> LeaseDirectory:
    made = LeaseDirectory(tmp_path / "group")
    made.create()
    return made


def test_one_of_many_takeovers_of_a_term_succeeds(directory):
    for term in range(20):
        barrier, won = threading.Barrier(4), []

        def run(term: int = term) -> None:
            barrier.wait()  # noqa: B023 - the threads end within the turn
            if directory.take_over(term):
                won.append(term)  # noqa: B023

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert won == [term]
        assert directory.term() == term + 1


def test_creating_the_directory_twice_changes_nothing(directory):
    directory.take_over(0)
    FileStore(directory, 1).put("jobs", "a", b"1")
    LeaseDirectory(directory.path).create()
    assert directory.term() == 1
    assert FileStore(directory, 1).get("jobs", "a") == b"1"
    assert [path.name for path in directory.path.parent.iterdir()] == ["group"]


def test_unfinished_files_are_no_entries(directory):
    store = FileStore(directory, 0)
    store.put("jobs", "a", b"1")
    (directory.at(0) / "jobs" / ".b.json.1234").write_bytes(b"half")
    assert store.names("jobs") == ["a"]


@pytest.mark.parametrize("name", ["../a", "a/b", "", ".a", "a.json"])
def test_names_cannot_leave_their_kind(directory, name):
    with pytest.raises(ValueError, match="valid entry"):
        FileStore(directory, 0).put("jobs", name, b"1")


def lease_of(**changed: object) -> bytes:
    return json.dumps(
        {**json.loads(encode_lease(Lease(0, "a", 1, 5.0, "1.0"))), **changed}
    ).encode()


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"[]",
        b'{"term": 1}',
        b"\xff",
        b"[" * 100_000,
        lease_of(duration=None),
        lease_of(duration="5"),
        lease_of(duration=float("nan")),
        lease_of(duration=0),
        lease_of(member=7),
        lease_of(url=[]),
    ],
)
def test_a_damaged_lease_counts_as_none(directory, payload, caplog):
    (directory.at(0) / "lease.json").write_bytes(payload)
    with caplog.at_level(logging.WARNING, logger="firesteel"):
        assert directory.lease(0) is None
    assert "lease.json" in caplog.text


def test_a_whole_lease_is_read(directory):
    (directory.at(0) / "lease.json").write_bytes(lease_of(duration=5, url="http://host:1"))
    assert directory.lease(0) == Lease(0, "a", 1, 5.0, "1.0", "http://host:1")


def test_a_late_write_of_an_old_leader_fails_at_every_step(directory, monkeypatch):
    """Take the directory over after each step of a write. No entry may appear."""
    for step in ("open", "rename"):
        term = directory.term()
        store = FileStore(directory, term)
        real = getattr(Path, step)

        def late(self: Path, *arguments, real=real, term=term):
            if directory.term() == term and self.name.startswith(".late"):
                directory.take_over(term)
            return real(self, *arguments)

        with monkeypatch.context() as patched:
            patched.setattr(Path, step, late)
            with pytest.raises(LeadershipLostError):
                store.put("jobs", "late", b"1")
        assert FileStore(directory, term + 1).names("jobs") == []


def test_a_leader_whose_disk_refuses_writes_steps_down_and_leads_again_later(tmp_path, monkeypatch):
    settings = file_settings(tmp_path, duration=0.5)
    master = Candidate(settings.open())
    try:
        wait_until(lambda: master.granted)
        real = LeaseDirectory.write

        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr(LeaseDirectory, "write", refuse)
        monkeypatch.setattr(LeaseDirectory, "take_over", refuse)
        wait_until(lambda: master.revoked == master.granted)
        monkeypatch.undo()
        assert LeaseDirectory.write is real
        wait_until(lambda: len(master.granted) == 2)
        assert master.granted[1] > master.granted[0]
    finally:
        master.close()


def test_a_leader_whose_renewal_hangs_steps_down_and_leads_again_later(tmp_path, monkeypatch):
    """A file system that is mounted from a different machine may answer after minutes, or never."""
    settings = file_settings(tmp_path, duration=0.5)
    answers = threading.Event()
    real = LeaseDirectory.renew

    def hang(self: LeaseDirectory, lease: Lease) -> None:
        if lease.sequence > 2:
            answers.wait()
        real(self, lease)

    monkeypatch.setattr(LeaseDirectory, "renew", hang)
    master = Candidate(settings.open())
    try:
        wait_until(lambda: master.revoked)
        answers.set()
        wait_until(lambda: len(master.granted) > 1)
        assert master.granted[1] > master.granted[0]
        assert LeaseDirectory(Path(settings.directory)).term() == master.granted[-1]
    finally:
        answers.set()
        master.close()
