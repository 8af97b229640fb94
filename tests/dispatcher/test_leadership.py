"""A session that stands for election: leads, steps down, and survives a failed takeover."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from firesteel.checkpoint.storage.storage import StorageError
from firesteel.dispatcher import leadership
from firesteel.dispatcher.job_store import JobStore
from firesteel.dispatcher.leadership import SessionLeadership
from firesteel.dispatcher.session import SessionDispatcher
from firesteel.leader.leases import LeaseServices
from firesteel.leader.services import Member
from firesteel.leader.settings import LeaderSettings
from tests.leader.candidates import Candidate
from tests.leader.groups import file_settings
from tests.waiting import wait_until


class Session:
    """A session without Spark and jobs. ``failures`` are raised by the next takeovers."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.terms: list[int] = []
        self.stop_requested = threading.Event()
        self.failure: Exception | None = None
        self.reasons: list[str] = []

    def stand_by(self) -> None:
        """Take jobs only while this master leads."""

    def warm_up(self) -> None:
        """There is no Spark."""

    def lead(self, store: JobStore) -> None:
        self.terms.append(store.term)
        if self.failures:
            raise self.failures.pop(0)

    def step_down(self, reason: str) -> None:
        self.reasons.append(reason)


Start = Callable[..., tuple[Session, SessionLeadership]]


@pytest.fixture
def settings(tmp_path: Path) -> LeaderSettings:
    return file_settings(tmp_path)


@pytest.fixture
def start(settings: LeaderSettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setattr(leadership, "_PAUSE_SECONDS", 0.5)
    with ExitStack() as stack:

        def begin(*failures: Exception) -> tuple[Session, SessionLeadership]:
            session = Session(*failures)
            led = SessionLeadership(cast("SessionDispatcher", session), settings)
            stack.callback(led.close)
            led.stand(f"http://host:{id(session)}")
            return session, led

        yield begin


FAILURES: list[Any] = [
    pytest.param(StorageError("read", "/ha/jobs", "Input/output error"), id="storage"),
    pytest.param(ValueError("unexpected"), id="unexpected"),
]


@pytest.mark.parametrize("failure", FAILURES)
def test_a_master_that_cannot_take_over_the_jobs_tries_again(start, failure):
    session, led = start(failure, failure)
    wait_until(lambda: led.term() is not None)
    assert session.terms == sorted(set(session.terms))
    assert len(session.terms) == 3
    assert led.term() == session.terms[-1]
    assert session.reasons == [str(failure)] * 2


def test_a_different_master_takes_over_what_the_first_one_cannot(start):
    broken, first = start(*(StorageError("read", "/ha", "Permission denied") for _ in range(1000)))
    wait_until(lambda: broken.terms)
    _, second = start()
    wait_until(lambda: second.term() is not None)
    assert first.term() is None
    wait_until(lambda: first.leader() is not None)


def test_a_master_that_cannot_take_over_the_jobs_can_be_stopped(start):
    session, led = start(*(StorageError("read", "/ha", "Permission denied") for _ in range(1000)))
    wait_until(lambda: len(session.terms) > 1)
    led.close()
    known = len(session.terms)
    _, second = start()
    wait_until(lambda: second.term() is not None)
    assert len(session.terms) == known


def test_a_master_that_finds_a_leader_of_a_different_version_later_ends(
    start, settings, monkeypatch
):
    """Both masters started at once, so none of them could see the other one's version."""
    leader = Candidate(settings.open(), Member(version="1.0"))
    try:
        wait_until(lambda: leader.granted)
        leader.election.announce(leader.granted[0], "http://other:8081")
        real, calls = LeaseServices.check_member, []

        def overlook_once(self: LeaseServices, member: Member) -> None:
            calls.append(member)
            if len(calls) > 1:
                real(self, member)

        monkeypatch.setattr(LeaseServices, "check_member", overlook_once)
        session, _ = start()
        assert session.stop_requested.wait(60)
        assert "The leader runs Firesteel 1.0" in str(session.failure)
    finally:
        leader.close()
