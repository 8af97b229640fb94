"""The slot directory over its network socket."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing import AuthenticationError

import pytest

from firesteel.slothost.directory import Place, SlotDirectory, claim

SLOT: Place = ("job", 0, 1, 2)
HERE, THERE = ("10.0.0.1", 1), ("10.0.0.2", 2)
TOKEN = "secret"


@pytest.fixture
def directory() -> Iterator[SlotDirectory]:
    directory = SlotDirectory("127.0.0.1", TOKEN)
    yield directory
    directory.close()


def test_the_first_claim_counts(directory: SlotDirectory) -> None:
    assert claim(directory.location, TOKEN, SLOT) is None
    assert claim(directory.location, TOKEN, SLOT, HERE) == HERE
    assert claim(directory.location, TOKEN, SLOT, THERE) == HERE
    assert claim(directory.location, TOKEN, SLOT) == HERE


def test_only_the_home_that_does_not_answer_is_replaced(directory: SlotDirectory) -> None:
    claim(directory.location, TOKEN, SLOT, HERE)
    assert claim(directory.location, TOKEN, SLOT, THERE, instead_of=HERE) == THERE
    # A slower task has seen the same loss.
    other = ("10.0.0.3", 3)
    assert claim(directory.location, TOKEN, SLOT, other, instead_of=HERE) == THERE


def test_the_slots_of_a_job_that_is_over_are_forgotten(directory: SlotDirectory) -> None:
    others: Place = ("other", 0, 1, 2)
    for place in (SLOT, others):
        claim(directory.location, TOKEN, place, HERE)
    directory.forget("job")
    assert claim(directory.location, TOKEN, SLOT) is None
    assert claim(directory.location, TOKEN, others) == HERE


def test_a_client_without_the_token_is_turned_away(directory: SlotDirectory) -> None:
    with pytest.raises(AuthenticationError):
        claim(directory.location, "guess", SLOT, THERE)
    assert claim(directory.location, TOKEN, SLOT) is None


def test_a_connection_that_broke_is_opened_again() -> None:
    first = SlotDirectory("127.0.0.1", TOKEN)
    claim(first.location, TOKEN, SLOT, HERE)
    first.close()
    from firesteel.slothost import directory as module

    module._connections[first.location].close()
    second = SlotDirectory("127.0.0.1", TOKEN)
    module._connections[second.location] = module._connections.pop(first.location)
    assert claim(second.location, TOKEN, SLOT) is None
    second.close()
