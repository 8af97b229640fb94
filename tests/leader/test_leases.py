"""Leases of any place: versions of masters."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from firesteel.leader.file_leases import LeaseDirectory
from firesteel.leader.lease_election import Lease
from firesteel.leader.leases import LeaseServices
from firesteel.leader.services import DifferentVersionError, Member
from tests.waiting import wait_until

DURATION = 3.0


class ObservedDirectory(LeaseDirectory):
    """Counts how often a lease is read."""

    looks = 0

    def lease(self, term: int) -> Lease | None:
        self.looks += 1
        return super().lease(term)


@pytest.fixture
def directory(tmp_path: Path) -> ObservedDirectory:
    made = ObservedDirectory(tmp_path / "group")
    made.create()
    made.take_over(0)
    made.renew(Lease(1, "a", 1, DURATION, "1.0"))
    return made


class Check:
    """A member of version 2.0 that looks at the leader, in a thread."""

    def __init__(self, directory: ObservedDirectory) -> None:
        self.error: DifferentVersionError | None = None
        self._services = LeaseServices(directory, DURATION, DURATION / 10)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        wait_until(lambda: directory.looks > 0)

    def _run(self) -> None:
        try:
            self._services.check_member(Member(version="2.0"))
        except DifferentVersionError as error:
            self.error = error

    def outcome(self) -> DifferentVersionError | None:
        self._thread.join()
        return self.error


def test_a_living_leader_of_a_different_version_is_an_error(directory):
    check = Check(directory)
    directory.renew(Lease(1, "a", 2, DURATION, "1.0"))
    assert "The leader runs Firesteel 1.0" in str(check.outcome())


def test_a_dead_leader_of_a_different_version_is_none(directory):
    assert Check(directory).outcome() is None


def test_a_new_leader_of_the_same_version_may_replace_a_dead_one_of_a_different_one(directory):
    """All masters were replaced by ones of a new version, and started one after the other."""
    check = Check(directory)
    directory.take_over(1)
    directory.renew(Lease(2, "b", 1, DURATION, "2.0"))
    assert check.outcome() is None


def test_a_new_leader_of_a_different_version_is_an_error_once_it_lives(directory):
    check = Check(directory)
    directory.take_over(1)
    lease = Lease(2, "b", 1, DURATION, "1.0")
    looks = directory.looks
    directory.renew(lease)
    wait_until(lambda: directory.looks > looks + 1)
    directory.renew(replace(lease, sequence=2))
    assert check.outcome() is not None
