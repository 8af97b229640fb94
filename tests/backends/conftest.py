"""Every test in this folder runs on every backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from firesteel.state.backend import KeyedStateBackend
from firesteel.state.hashmap.keyed_state import HashMapKeyedState

Create = Callable[..., KeyedStateBackend]

BACKENDS: dict[str, Create] = {"hashmap": HashMapKeyedState}


@pytest.fixture(params=sorted(BACKENDS))
def create(request: pytest.FixtureRequest) -> Iterator[Create]:
    """Makes empty backends of one kind, which are closed at the end."""
    made: list[KeyedStateBackend] = []

    def make(*arguments: object) -> KeyedStateBackend:
        made.append(BACKENDS[request.param](*arguments))
        return made[-1]

    yield make
    for backend in made:
        backend.close()
