"""Key groups: assigning keys to subtasks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.state import key_groups
from firesteel.state.key_groups import KeyGroupRange, KeyRouter, key_group_of, subtask_of
from tests.parameter_ids import without_address

_sizes = st.integers(1, 300).flatmap(
    lambda max_parallelism: st.tuples(st.integers(1, max_parallelism), st.just(max_parallelism))
)


@given(_sizes)
def test_the_ranges_of_all_subtasks_hold_every_group_once(sizes: tuple[int, int]) -> None:
    parallelism, max_parallelism = sizes
    ranges = [
        KeyGroupRange.of_subtask(index, parallelism, max_parallelism)
        for index in range(parallelism)
    ]
    groups = [group for owned in ranges for group in range(owned.start, owned.end + 1)]
    assert groups == list(range(max_parallelism))


@given(_sizes)
def test_a_group_lies_in_the_range_of_its_subtask(sizes: tuple[int, int]) -> None:
    parallelism, max_parallelism = sizes
    for group in range(max_parallelism):
        owner = subtask_of(group, parallelism, max_parallelism)
        assert group in KeyGroupRange.of_subtask(owner, parallelism, max_parallelism)


@given(_sizes)
def test_no_subtask_has_much_more_than_another(sizes: tuple[int, int]) -> None:
    parallelism, max_parallelism = sizes
    ranges = [
        KeyGroupRange.of_subtask(index, parallelism, max_parallelism)
        for index in range(parallelism)
    ]
    lengths = [owned.end - owned.start + 1 for owned in ranges]
    assert max(lengths) - min(lengths) <= 1


_keys = st.one_of(
    st.lists(st.integers(0, 70_000)),
    st.lists(st.integers(-70_000, 70_000)),
    st.lists(st.integers()),
    st.lists(st.text()),
    st.lists(st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), st.text())),
)


@given(_keys, st.integers(1, 8))
def test_a_router_says_what_the_rules_say(keys: list[Any], parallelism: int) -> None:
    assert KeyRouter(parallelism, 128).targets(keys) == [
        subtask_of(key_group_of(key, 128), parallelism, 128) for key in keys
    ]


def test_a_full_cache_starts_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_groups, "_CACHE_LIMIT", 3)
    router = KeyRouter(4, 128)
    keys = [f"key {number}" for number in range(20)]
    assert router.targets(keys) == router.targets(keys)
    assert len(router._cache) <= 3


@pytest.mark.parametrize("key", [[1], object(), float("nan")], ids=without_address)
def test_a_key_that_cannot_be_routed_is_a_type_error(key: Any) -> None:
    with pytest.raises(TypeError):
        KeyRouter(2, 128).targets(["a", key])
