"""Key selectors that compute a record's key again on the receiving side of an exchange."""

from __future__ import annotations

import random
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import pytest

from firesteel.datastream.functions import KeyedProcessFunction
from firesteel.errors import UserFunctionError
from firesteel.graph.partitioning import Partitioning, ShipStrategy
from firesteel.graph.stream_graph import StreamEdge
from firesteel.state.key_groups import KeyRouter
from firesteel.task.codegen.key_loops import KeySelection
from firesteel.task.exchange.keys import key_expression
from firesteel.task.record_batch import RecordBatch
from firesteel.testing import JobHarness

_COUNT = [0]
_SHARDS = 8


def _edge(select: Callable[[Any], Any]) -> StreamEdge:
    return StreamEdge(1, 1, 2, Partitioning(ShipStrategy.HASH, key_selector=select))


@pytest.mark.parametrize(
    "select",
    [
        lambda value: value,
        lambda value: value[0],
        lambda value: value["user"]["id"],
        lambda value: value % 1000,
        lambda value: (value[1] * 31 + value[0]) // 7 & 255,
        lambda value: 1,
    ],
)
def test_an_expression_of_the_record_and_constants_gives_its_key_again(
    select: Callable[[Any], Any],
) -> None:
    assert key_expression(_edge(select)) is not None


def _counting(value: Any) -> int:
    _COUNT[0] += 1
    return _COUNT[0]


def _with_memory(value: Any, seen: list[int] = [0]) -> int:  # noqa: B006 - that is the point
    return seen[0]


def _with_keyword(value: Any, *, seen: tuple[int, ...] = (0,)) -> int:
    return seen[0]


def _first_of(value: Any) -> Any:
    first, *_ = value
    return first


async def _later(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    "select",
    [
        lambda value: random.randrange(4),
        lambda value: value % _SHARDS,
        lambda value: value.id,
        lambda value: hash(value[0]),
        lambda value: [*value][1],
        lambda value: f"{value}",
        lambda value: (yield value),
        _counting,
        _with_memory,
        _with_keyword,
        _first_of,
        _later,
        itemgetter(0),
        str.upper,
    ],
)
def test_whatever_names_or_unpacks_something_is_asked_once_only(
    select: Callable[[Any], Any],
) -> None:
    assert key_expression(_edge(select)) is None


def test_a_closure_is_asked_once_only() -> None:
    shards = 4
    assert key_expression(_edge(lambda value: value % shards)) is None


def test_a_record_that_changed_on_its_way_names_the_key_selector() -> None:
    selection = KeySelection(lambda value: value[0], "key_by after Map")
    batch = RecordBatch([(1,), ()], selection=selection)
    with pytest.raises(UserFunctionError, match="key_by after Map"):
        _ = batch.keys


class KeyAndSubtask(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield ctx.get_current_key(), self.subtask


@pytest.mark.parametrize(
    "select", [lambda n: n % 50, lambda n: random.randrange(50)], ids=["plain", "drawn"]
)
def test_each_key_is_seen_by_its_subtask_only(select: Callable[[int], int]) -> None:
    def program(env: Any) -> Any:
        return env.from_collection(list(range(2_000))).key_by(select).process(KeyAndSubtask())

    harness = JobHarness(program, parallelism=3, records_per_epoch=150)
    harness.run()
    assert len(harness.collected) == 2_000
    owners = KeyRouter(3, 128).targets(list(range(50)))
    assert set(harness.collected) == set(enumerate(owners))
