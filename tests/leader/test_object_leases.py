"""Leases in an object store: conditional writes, and operations that overlap with a takeover."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from firesteel.errors import LeadershipLostError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.leader import conditional_bucket
from firesteel.leader.conditional_bucket import CONNECTIONS, ConditionalBucket
from firesteel.leader.lease_election import Lease
from firesteel.leader.object_leases import ObjectLeases
from firesteel.leader.services import HighAvailabilityError
from firesteel.leader.settings import LeaderSettings
from tests.leader.candidates import Candidate
from tests.leader.groups import s3_settings
from tests.servers.proxy import Proxy
from tests.waiting import wait_until


@pytest.fixture
def settings(s3: FileSystemOptions) -> LeaderSettings:
    return s3_settings(s3)


@pytest.fixture
def leases(settings: LeaderSettings) -> ObjectLeases:
    made = ObjectLeases(settings.directory, settings.file_systems)
    made.create()
    return made


def run_at_once(count: int, run: Callable[[int], object]) -> None:
    """Call a function in some threads that begin together. Errors fail the test."""
    barrier, errors = threading.Barrier(count), []

    def begin(number: int) -> None:
        barrier.wait()
        try:
            run(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_one_of_many_takeovers_of_a_term_succeeds(settings, leases):
    others = [ObjectLeases(settings.directory, settings.file_systems) for _ in range(3)]
    for term in range(5):
        won: list[int] = []

        def run(number: int, term: int = term, won: list[int] = won) -> None:
            if [leases, *others][number].take_over(term):
                won.append(number)

        run_at_once(4, run)
        assert len(won) == 1
        assert leases.term() == term + 1


def test_threads_of_a_leader_lose_no_update(leases):
    leases.take_over(0)
    store = leases.store(1)

    def run(number: int) -> None:
        for turn in range(5):
            store.put("counters", f"job-{number}", b"%d" % turn)
            store.put("checkpoints", f"job-{number}@{turn}", b"x")
            if turn:
                store.delete("checkpoints", f"job-{number}@{turn - 1}")

    run_at_once(4, run)
    assert leases.take_over(1)
    after = leases.store(2)
    assert after.names("checkpoints") == [f"job-{number}@4" for number in range(4)]
    assert [after.get("counters", f"job-{number}") for number in range(4)] == [b"4"] * 4


def test_the_entries_of_earlier_terms_are_removed(leases):
    for term in range(3):
        leases.take_over(term)
        leases.store(term + 1).put("jobs", f"job-{term}", b"x")
    assert {name.split("/")[0] for name in leases.bucket.names("term-")} == {"term-0000000003"}
    assert leases.store(3).names("jobs") == ["job-0", "job-1", "job-2"]


def test_a_takeover_may_take_longer_than_a_lease(settings, leases, monkeypatch):
    """A session with many jobs has many entries to copy. Others must not take over meanwhile."""
    leases.take_over(0)
    for number in range(3 * CONNECTIONS):
        leases.bucket.write(f"term-0000000001/jobs/job-{number}.json", b"x")
    real = ConditionalBucket.copy

    def copy_slowly(bucket: ConditionalBucket, source: str, target: str) -> None:
        time.sleep(0.8)
        real(bucket, source, target)

    monkeypatch.setattr(ConditionalBucket, "copy", copy_slowly)
    short = replace(settings, lease_duration=2.0, lease_renewal=0.2)
    masters = [Candidate(short.open()) for _ in range(2)]
    try:
        wait_until(lambda: any(one.granted for one in masters))
        deadline = time.monotonic() + short.lease_duration
        wait_until(lambda: time.monotonic() > deadline)
        assert [term for one in masters for term in one.granted] == [2]
        assert [term for one in masters for term in one.revoked] == []
        assert len(leases.store(2).names("jobs")) == 3 * CONNECTIONS
    finally:
        for one in masters:
            one.close()


def during(
    bucket: ConditionalBucket, number: int, act: Callable[[], object], monkeypatch: Any
) -> list[str]:
    """Do something right before a request of a bucket. Returns the requests, as they come."""
    requests: list[str] = []
    numbers = itertools.count(1)
    real = bucket._client._make_api_call

    def call(operation: str, arguments: Any) -> Any:
        requests.append(operation)
        if next(numbers) == number:
            act()
        return real(operation, arguments)

    monkeypatch.setattr(bucket._client, "_make_api_call", call)
    return requests


CHANGES: dict[str, Callable[[Any], object]] = {
    "put": lambda store: store.put("jobs", "changed", b"new"),
    "create": lambda store: store.put("jobs", "created", b"new"),
    "delete": lambda store: store.delete("jobs", "changed"),
}

Entries = dict[str, bytes | None]
UNCHANGED: Entries = {"changed": b"old", "created": None}
CHANGED: dict[str, Entries] = {
    "put": {"changed": b"new", "created": None},
    "create": {"changed": b"old", "created": b"new"},
    "delete": {"changed": None, "created": None},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_during_which_a_takeover_happens_is_refused(settings, leases, change, monkeypatch):
    """Take over before each request of a change."""
    other = ObjectLeases(settings.directory, settings.file_systems)
    leases.take_over(0)
    term, number = 1, 0
    while True:
        number += 1
        leases.store(term).put("jobs", "changed", b"old")
        leases.store(term).delete("jobs", "created")
        with monkeypatch.context() as patched:
            requests = during(leases.bucket, number, partial(other.take_over, term), patched)
            if number == 3:
                CHANGES[change](leases.store(term))
                break
            with pytest.raises(LeadershipLostError):
                CHANGES[change](leases.store(term))
        term += 1
        # The next leader may have an entry whose writer does not know that it was written.
        expected = UNCHANGED if number == 1 else CHANGED[change]
        store = other.store(term)
        assert {name: store.get("jobs", name) for name in expected} == expected
    assert len(requests) == 2


@pytest.mark.parametrize("change", ["create", "delete"])
def test_a_change_in_the_middle_of_a_takeover(settings, leases, change, monkeypatch):
    """Change an entry before each request of a takeover. If it succeeds, the next leader has it."""
    other = ObjectLeases(settings.directory, settings.file_systems)
    leases.take_over(0)
    term, number, count = 1, 0, 99
    after = CHANGED[change]
    refused = []
    while number < count:
        number += 1
        old = leases.store(term)
        old.put("jobs", "changed", b"old")
        old.delete("jobs", "created")
        outcome: list[bool] = []

        def act(old: Any = old, outcome: list[bool] = outcome) -> None:
            with suppress(LeadershipLostError):
                CHANGES[change](old)
                outcome.append(True)

        with monkeypatch.context() as patched:
            requests = during(other.bucket, number, act, patched)
            assert other.take_over(term)
        count = len(requests)
        term += 1
        found = {name: other.store(term).get("jobs", name) for name in after}
        if outcome:
            assert found == after
        else:
            refused.append(number)
            # The next leader sees it as a whole or not at all, and goes on seeing the same.
            assert found in (after, UNCHANGED)
        assert leases.take_over(term)
        term += 1
        assert {name: leases.store(term).get("jobs", name) for name in after} == found
    # The first request reads the term, and the second one ends it.
    assert refused == list(range(3, count + 1))


def test_a_takeover_that_ends_in_the_middle_is_completed_by_the_next_one(
    settings, leases, monkeypatch
):
    class Died(BaseException):
        pass

    def die() -> None:
        raise Died

    other = ObjectLeases(settings.directory, settings.file_systems)
    leases.take_over(0)
    for name in ("a", "b"):
        leases.store(1).put("jobs", name, b"1")
    fence = leases.fence(1)
    number = 0
    while True:
        number += 1
        term = leases.term()
        with monkeypatch.context() as patched:
            requests = during(other.bucket, number, die, patched)
            try:
                assert other.take_over(term)
            except Died:
                assert leases.term() in (term, term + 1)
            else:
                assert len(requests) < number
                break
        now = leases.term()
        assert leases.take_over(now)
        with pytest.raises(LeadershipLostError):
            fence.check()
        fence = leases.fence(now + 1)
        fence.check()
        assert leases.store(now + 1).names("jobs") == ["a", "b"]


def test_a_frozen_takeover_does_not_lead(settings, leases, monkeypatch):
    """A different master takes over before each request of a takeover."""
    other = ObjectLeases(settings.directory, settings.file_systems)
    number = 0
    while True:
        number += 1
        term = leases.term()
        with monkeypatch.context() as patched:
            requests = during(
                other.bucket, number, lambda: leases.take_over(leases.term()), patched
            )
            won = other.take_over(term)
        led = leases.term()
        if won:
            # It came first, or the other one took over from it.
            assert number > len(requests) or requests[number - 1] == "DeleteObject"
            if number > len(requests):
                break
        assert led > term
        leases.store(led).put("jobs", "a", b"%d" % number)
    assert leases.store(leases.term()).get("jobs", "a") == b"%d" % (number - 1)


def test_a_leader_of_an_ended_term_does_not_see_an_empty_list(leases):
    leases.take_over(0)
    old = leases.store(1)
    old.put("checkpoints", "job@1", b"x")
    leases.take_over(1)
    with pytest.raises(LeadershipLostError):
        old.names("checkpoints")
    assert leases.store(2).names("checkpoints") == ["job@1"]


def test_a_late_lease_of_an_old_leader_counts_as_none(leases):
    leases.take_over(0)
    leases.renew(Lease(1, "old", 1, 5.0, "1"))
    assert leases.lease(1).member == "old"
    leases.take_over(1)
    with pytest.raises(LeadershipLostError):
        leases.renew(Lease(1, "old", 2, 5.0, "1"))
    assert leases.lease(2) is None


def test_an_answer_that_was_lost_does_not_hide_a_write(leases):
    """A client repeats a call whose answer was lost. The condition no longer holds then."""
    bucket = leases.bucket
    assert bucket.create("object", b"1")
    assert bucket.create("object", b"1")
    assert not bucket.create("object", b"2")
    first = bucket.read("object")
    assert bucket.replace("object", b"2", first.tag)
    assert bucket.replace("object", b"2", first.tag)
    assert not bucket.replace("object", b"3", first.tag)
    assert not bucket.replace("no-object", b"3", first.tag)
    assert bucket.read("object").payload == b"2"
    assert bucket.read("no-object") is None


def test_a_store_that_ignores_conditions_is_refused(settings, monkeypatch):
    leases = ObjectLeases(settings.directory, settings.file_systems)
    real = leases.bucket._client.put_object

    def ignore(**arguments: Any) -> Any:
        return real(
            **{
                key: value
                for key, value in arguments.items()
                if key not in ("IfMatch", "IfNoneMatch")
            }
        )

    monkeypatch.setattr(leases.bucket._client, "put_object", ignore)
    with pytest.raises(HighAvailabilityError, match="If-None-Match"):
        leases.create()
    assert leases.bucket.names("") == []


def test_errors_name_the_place_and_the_settings(s3):
    leases = ObjectLeases("s3://key:hush@no-such-bucket/ha", s3)
    with pytest.raises(HighAvailabilityError, match="s3://no-such-bucket/ha") as error:
        leases.create()
    assert "hush" not in str(error.value)
    with pytest.raises(HighAvailabilityError, match="NoSuchBucket"):
        leases.term()


def test_a_missing_library_is_named(s3, monkeypatch):
    monkeypatch.setattr(conditional_bucket, "_MISSING", True)
    with pytest.raises(HighAvailabilityError, match=r"pip install 'firesteel\[s3\]'"):
        s3_settings(s3).open()


def test_a_leader_steps_down_while_the_store_is_away_and_one_leads_when_it_is_back(settings, s3):
    proxy = Proxy(int(str(s3.s3_endpoint).rpartition(":")[2]))
    through = replace(
        settings,
        lease_duration=1.0,
        lease_renewal=0.2,
        file_systems=replace(s3, s3_endpoint=f"http://127.0.0.1:{proxy.port}"),
    )
    master = Candidate(through.open())
    try:
        wait_until(lambda: master.granted)
        first = master.services.store(master.granted[0])
        first.put("jobs", "a", b"1")
        proxy.cut()
        wait_until(lambda: master.revoked == master.granted)
        with pytest.raises(HighAvailabilityError):
            first.put("jobs", "a", b"2")
        proxy.mend()
        wait_until(lambda: len(master.granted) == 2)
        with pytest.raises(LeadershipLostError):
            first.put("jobs", "a", b"3")
        assert master.services.store(master.granted[1]).get("jobs", "a") == b"1"
    finally:
        master.close()
        proxy.close()
