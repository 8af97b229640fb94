"""Every test in this folder runs on every backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from firesteel.state.backend import KeyedStateBackend
from firesteel.state.backend_factory import StateBackendSettings, create_keyed_state

Create = Callable[..., KeyedStateBackend]
MAX_PARALLELISM = 128


def _create(settings: StateBackendSettings, key_type: object = None) -> KeyedStateBackend:
    return create_keyed_state(settings, key_type, MAX_PARALLELISM)  # type: ignore[arg-type]


BACKENDS: dict[str, Create] = {
    kind: partial(_create, StateBackendSettings(kind=kind, memory_bytes=8 << 20))
    for kind in ("hashmap", "rocksdb")
}


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
