"""The section that measures memory per key."""

from __future__ import annotations

import pytest

from benchmarks.sections.key_memory import KINDS, bytes_per_key
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_fills_all_keys(kind: str) -> None:
    backend = HashMapKeyedStateBackend()
    KINDS[kind](backend, range(1_000))
    assert max(len(table) for table in backend.snapshot().values()) == 1_000
    assert isinstance(bytes_per_key(KINDS[kind], 1_000), float)
