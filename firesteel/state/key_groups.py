"""Key groups: the units in which keyed state is stored and moved.

The group of a key depends only on the key and the maximum parallelism. The subtask of a group
depends on the parallelism, so rescaling moves whole groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.state.stable_hash import FOLDED_INTS, fold_int, mix, mix_all, stable_hash

# The size of the cache of a router. A full cache is emptied.
_CACHE_LIMIT = 1 << 17


def key_group_of(key: Any, max_parallelism: int) -> int:
    return stable_hash(key) % max_parallelism


def key_groups_of(keys: list[Any], max_parallelism: int) -> list[int]:
    """The key group of each key. It is much faster than ``key_group_of`` for each of them."""
    types = set(map(type, keys))
    if types == {int}:
        table = int_key_groups(max_parallelism)
        return [table[key % FOLDED_INTS] for key in keys]
    if types == {str}:
        checksums = [crc32(key.encode("utf-8", "surrogatepass")) for key in keys]
        return _remainders(mix_all(pa.array(checksums, pa.uint64())), max_parallelism)
    return [key_group_of(key, max_parallelism) for key in keys]


def _remainders(values: pa.Array, divisor: int) -> list[int]:
    quotients = pc.divide(values, pa.scalar(divisor, pa.uint64()))
    found: list[int] = pc.subtract(
        values, pc.multiply(quotients, pa.scalar(divisor, pa.uint64()))
    ).to_pylist()
    return found


def subtask_of(key_group: int, parallelism: int, max_parallelism: int) -> int:
    return key_group * parallelism // max_parallelism


@dataclass(frozen=True, slots=True)
class KeyGroupRange:
    """The key groups start..end (inclusive) of one subtask."""

    start: int
    end: int

    def __contains__(self, key_group: int) -> bool:
        return self.start <= key_group <= self.end

    @staticmethod
    def of_subtask(index: int, parallelism: int, max_parallelism: int) -> KeyGroupRange:
        start = (index * max_parallelism + parallelism - 1) // parallelism
        end = ((index + 1) * max_parallelism - 1) // parallelism
        return KeyGroupRange(start, end)


class _TargetCache(dict[Any, int]):
    """A cache from keys to subtasks."""

    def __init__(self, parallelism: int, max_parallelism: int) -> None:
        super().__init__()
        self._parallelism = parallelism
        self._max_parallelism = max_parallelism

    def __missing__(self, key: Any) -> int:
        if len(self) >= _CACHE_LIMIT:
            self.clear()
        group = key_group_of(key, self._max_parallelism)
        target = subtask_of(group, self._parallelism, self._max_parallelism)
        self[key] = target
        return target


@lru_cache(maxsize=8)
def int_key_groups(max_parallelism: int) -> list[int]:
    """The key group of every folded int (see ``fold_int``)."""
    return [mix(folded) % max_parallelism for folded in range(FOLDED_INTS)]


@lru_cache(maxsize=8)
def _int_targets(parallelism: int, max_parallelism: int) -> list[int]:
    """The subtask of every folded int. The result is cached, because every writer needs it."""
    groups = int_key_groups(max_parallelism)
    return [subtask_of(group, parallelism, max_parallelism) for group in groups]


class _LargeInts(dict[int, int]):
    """Maps any integer to its subtask with the table of folded ints. It caches nothing."""

    def __init__(self, table: list[int]) -> None:
        super().__init__()
        self._table = table

    def __missing__(self, key: int) -> int:
        return self._table[fold_int(key)]


TargetLookup = list[int] | _TargetCache | _LargeInts


class KeyRouter:
    """Finds the subtasks of a whole batch of keys.

    For integers there is a table of folded values instead of the cache. With many distinct keys
    the cache would cost more memory than it saves time.
    """

    __slots__ = ("_cache", "large_ints", "small_ints")

    def __init__(self, parallelism: int, max_parallelism: int) -> None:
        self._cache = _TargetCache(parallelism, max_parallelism)
        # Small integers are indexes of the table. Other integers raise IndexError. Other objects
        # raise TypeError.
        self.small_ints = _int_targets(parallelism, max_parallelism)
        self.large_ints = _LargeInts(self.small_ints)

    def targets(self, keys: list[Any]) -> list[int]:
        """The subtask of each key. An unhashable key raises TypeError."""
        if set(map(type, keys)) == {int}:
            table = self.small_ints
            try:
                return [table[key] for key in keys]
            except IndexError:
                return [table[key % FOLDED_INTS] for key in keys]
        cache = self._cache
        return [cache[key] for key in keys]

    def lookup_for(self, keys: list[Any]) -> TargetLookup | None:
        """A mapping from keys of these types to subtasks. None if only ``targets`` handles them."""
        types = set(map(type, keys))
        if types == {int}:
            small = all(abs(key) < FOLDED_INTS for key in keys)
            return self.small_ints if small else self.large_ints
        return None if int in types else self._cache
