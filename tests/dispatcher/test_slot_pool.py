from __future__ import annotations

import pytest

from firesteel.dispatcher.slot_pool import NoResourceAvailableError, SlotPool, SlotRequest


def test_jobs_get_their_preferred_number_while_it_is_free() -> None:
    pool = SlotPool(10)
    pool.request(SlotRequest("a", (6, 2)))
    pool.request(SlotRequest("b", (6, 2)))
    assert pool.grant() == [("a", 6), ("b", 2)]
    assert pool.free == 2


def test_a_job_waits_until_enough_slots_are_free() -> None:
    pool = SlotPool(4)
    pool.request(SlotRequest("a", (3,)))
    pool.request(SlotRequest("b", (3,)))
    assert pool.grant() == [("a", 3)]
    assert pool.waiting() == ["b"]
    pool.release("a")
    assert pool.grant() == [("b", 3)]


def test_no_job_overtakes_one_that_needs_more() -> None:
    pool = SlotPool(4)
    for job, count in (("a", 3), ("large", 4), ("small", 1)):
        pool.request(SlotRequest(job, (count,)))
    assert pool.grant() == [("a", 3)]
    assert pool.waiting() == ["large", "small"]


def test_a_job_that_never_fits_is_refused_with_the_numbers() -> None:
    pool = SlotPool(4)
    with pytest.raises(NoResourceAvailableError, match="needs 5 slots"):
        pool.request(SlotRequest("a", (9, 5)))
    assert pool.waiting() == []


def test_a_job_that_waits_can_be_refused() -> None:
    pool = SlotPool(2)
    pool.request(SlotRequest("a", (2,)))
    pool.request(SlotRequest("b", (1,)))
    pool.grant()
    error = pool.refuse("b", "it took too long")
    assert (error.needed, error.free, error.total) == (1, 0, 2)
    assert pool.waiting() == []
    assert pool.taken_by("a") == 2


def test_a_running_job_gets_more_slots_if_they_are_free() -> None:
    pool = SlotPool(10)
    pool.request(SlotRequest("a", (4,)))
    pool.request(SlotRequest("b", (4,)))
    pool.grant()
    pool.resize("a", 6)
    assert (pool.taken_by("a"), pool.free) == (6, 0)
    with pytest.raises(NoResourceAvailableError, match="needs 7 slots"):
        pool.resize("a", 7)
    assert pool.taken_by("a") == 6
    pool.resize("a", 1)
    assert pool.free == 5
