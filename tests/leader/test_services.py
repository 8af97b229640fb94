"""Election and entries: the same tests on a shared directory, on S3, and on ZooKeeper."""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from firesteel.errors import LeadershipLostError
from firesteel.leader.conditional_bucket import ConditionalBucket
from firesteel.leader.services import HighAvailabilityError, Member
from firesteel.leader.settings import LeaderSettings
from firesteel.leader.zookeeper import ZooKeeper
from tests.leader.candidates import Candidate
from tests.waiting import wait_until


@pytest.fixture
def start(group_settings: LeaderSettings):
    with ExitStack() as stack:
        closed: list[Candidate] = []

        def stop(one: Candidate) -> None:
            if one not in closed:
                closed.append(one)
                one.close()

        def begin(member: Member | None = None) -> Candidate:
            one = Candidate(group_settings.open(), member or Member())
            stack.callback(stop, one)
            return one

        begin.stop = stop  # type: ignore[attr-defined]  # ends a candidate before the test does
        yield begin


def test_one_of_several_candidates_leads_and_terms_grow(start):
    candidates = [start() for _ in range(3)]
    wait_until(lambda: any(one.granted for one in candidates))
    [leader] = [one for one in candidates if one.granted]
    terms = list(leader.granted)
    for _ in range(2):
        start.stop(leader)
        candidates.remove(leader)
        wait_until(lambda: any(one.granted for one in candidates))
        [leader] = [one for one in candidates if one.granted]
        assert leader.granted[0] > terms[-1]
        terms += leader.granted
    assert len(set(terms)) == 3


def test_clients_find_the_leader_once_it_is_announced(start, group_settings):
    reader = group_settings.open()
    assert reader.leader() is None
    leader = start()
    wait_until(lambda: leader.granted)
    wait_until(lambda: reader.leader() is not None)
    found = reader.leader()
    assert (found.term, found.member, found.url) == (leader.granted[0], leader.member.id, None)
    leader.election.announce(leader.granted[0], "http://host:8081")
    wait_until(lambda: reader.leader().url == "http://host:8081")
    start.stop(leader)
    wait_until(lambda: reader.leader() is None)
    reader.close()


def test_a_leader_that_was_replaced_is_not_announced(start, group_settings):
    first = start()
    wait_until(lambda: first.granted)
    second = start()
    first.election.close()
    wait_until(lambda: second.granted)
    second.election.announce(second.granted[0], "http://second:8081")
    with pytest.raises(LeadershipLostError):
        first.election.announce(first.granted[0], "http://first:8081")
    wait_until(lambda: second.services.leader().url == "http://second:8081")


def test_the_store_refuses_a_leader_that_was_replaced(start):
    first = start()
    wait_until(lambda: first.granted)
    old = first.services.store(first.granted[0])
    old.put("jobs", "a", b"1")
    old.put("jobs", "a", b"2")
    old.put("jobs", "b", b"3")
    fence = first.services.fence(first.granted[0])
    fence.check()
    second = start()
    first.election.close()
    wait_until(lambda: second.granted)
    new = second.services.store(second.granted[0])
    assert new.names("jobs") == ["a", "b"]
    assert new.get("jobs", "a") == b"2"
    for change in (
        lambda: old.put("jobs", "a", b"late"),
        lambda: old.put("jobs", "c", b"late"),
        lambda: old.delete("jobs", "a"),
        old.check,
        fence.check,
    ):
        with pytest.raises(LeadershipLostError) as lost:
            change()
        assert lost.value.term == old.term
    assert new.names("jobs") == ["a", "b"]
    new.delete("jobs", "a")
    new.delete("jobs", "a")
    assert new.names("jobs") == ["b"]
    assert new.get("jobs", "a") is None
    second.services.fence(new.term).check()


def _write_foreign_entries(settings: LeaderSettings, term: int, kind: str) -> None:
    """Leave what people, backups and other programs may leave next to the entries of a group."""
    if settings.type == "zookeeper":
        services = settings.open()
        assert isinstance(services, ZooKeeper)
        for name in ("copy of a", "no data"):
            services.client.create(f"{services.path}/{kind}/{name}", None)
        services.close()
        return
    place = f"term-{term:010d}/{kind}"
    if settings.directory.startswith("s3:"):
        bucket = ConditionalBucket(settings.directory, settings.file_systems)
        for name in ("", "copy of a.json", "below/a.json", "notes.txt"):
            bucket.write(f"{place}/{name}", b"1")
        return
    directory = Path(settings.directory, place)
    (directory / "directory.json").mkdir()
    for name in ("copy of a.json", "notes.txt"):
        (directory / name).write_bytes(b"1")


def test_foreign_entries_are_named_and_skipped(start, group_settings, caplog):
    leader = start()
    wait_until(lambda: leader.granted)
    term = leader.granted[0]
    documents = group_settings.documents(leader.services, term)
    _write_foreign_entries(group_settings, term, "jobs")
    documents.put("jobs", "a", {"name": "orders"})
    with caplog.at_level(logging.ERROR, logger="firesteel"):
        assert documents.all("jobs") == {"a": {"name": "orders"}}
    assert "copy of a" in caplog.text
    assert "It is skipped" in caplog.text


def test_a_candidate_with_a_different_version_is_refused_with_the_reason(start):
    leader = start(Member(version="1.0"))
    wait_until(lambda: leader.granted)
    wait_until(lambda: leader.services.leader() is not None)
    with pytest.raises(HighAvailabilityError, match=r"Firesteel 1\.0.* has 2\.0"):
        start(Member(version="2.0"))
    start.stop(leader)
    newer = start(Member(version="2.0"))
    wait_until(lambda: newer.granted)


def test_a_candidate_that_starts_with_another_one_at_once_waits(start):
    barrier = threading.Barrier(4)
    found: list[Candidate] = []

    def run() -> None:
        barrier.wait()
        found.append(start())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: any(one.granted for one in found))
    assert sum(len(one.granted) for one in found) == 1
