"""Batch jobs in the harness: one key after the other, as on Spark."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from firesteel.common.typeinfo import Types
from firesteel.datastream import KeyedCoProcessFunction, KeyedProcessFunction, RuntimeExecutionMode
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.testing import Fault, JobHarness
from tests.batch_programs import PROGRAMS, BatchProgram, timed


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.build.__name__)
@pytest.mark.parametrize("seed", range(3))
def test_the_facts_of_flinks_batch_tests(program: BatchProgram, seed: int) -> None:
    harness = JobHarness(program, parallelism=1, seed=seed)
    harness.run()
    assert harness.collected == program.expected


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.build.__name__)
@pytest.mark.parametrize("fault", [Fault.RETRY, Fault.BREAK_OFF, Fault.LOSE_INPUT])
def test_they_hold_for_any_parallelism_and_after_faults(
    program: BatchProgram, fault: Fault
) -> None:
    harness = JobHarness(program, parallelism=3)
    harness.run(faults={1: dict.fromkeys(harness.places(), fault)})
    assert Counter(map(str, harness.collected)) == Counter(map(str, program.expected))


class Check:
    """Fails if the records of a key are not together, or not in the order of their timestamps."""

    def open(self, runtime_context: Any) -> None:
        self._seen: set[Any] = set()
        self._last: Any = None

    def process_element(self, value: Any, ctx: Any) -> Any:
        place = (ctx.get_current_key(), ctx.timestamp())
        if self._last is None or self._last[0] != place[0]:
            assert place[0] not in self._seen
            self._seen.add(place[0])
        else:
            assert self._last[1] <= place[1]
        self._last = place
        yield value


class OneKeyAtATime(Check, KeyedProcessFunction):
    """For one input."""


class TwoInputs(Check, KeyedCoProcessFunction):
    """For two inputs."""

    process_element1 = process_element2 = Check.process_element


@pytest.mark.parametrize("keys", [["a", "b", ""], [0, -1, 300, 2**70, 1.5], [None, (1, "x"), b"k"]])
@pytest.mark.parametrize("inputs", [1, 2])
def test_a_keyed_operator_sees_one_key_after_the_other(keys: list[Any], inputs: int) -> None:
    random = Random(len(keys) + inputs)
    records = [(random.choice(keys), random.randint(-50, 50), n) for n in range(500)]

    def program(env: Any) -> Any:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        first = timed(env, records[:300])
        if inputs == 1:
            merged = first.union(timed(env, records[300:])).key_by(_key)
            return merged.process(OneKeyAtATime())
        connected = first.connect(timed(env, records[300:])).key_by(_key, _key)
        return connected.process(TwoInputs())

    harness = JobHarness(program, parallelism=2)
    harness.run()
    assert Counter(harness.collected) == Counter(records)


def _key(record: Any) -> Any:
    return record[0]


def test_records_without_timestamps_keep_the_order_of_their_channel() -> None:
    def program(env: Any) -> Any:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        numbers = env.from_collection([(n % 3, n) for n in range(10_000)])
        return numbers.key_by(_key).reduce(lambda a, b: (a[0], b[1]) if a[1] < b[1] else None)

    harness = JobHarness(program)
    harness.run()
    assert harness.collected == [(0, 9_999), (1, 9_997), (2, 9_998)]


class Count(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self._count.update((self._count.value() or 0) + 1)
        yield value, self._count.value()


def test_the_state_of_a_key_is_gone_when_the_next_key_begins() -> None:
    def program(env: Any) -> Any:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        return env.from_collection([1, 2, 1, 2, 1]).key_by(lambda n: n).process(Count())

    harness = JobHarness(program)
    harness.run()
    assert harness.collected == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    assert not any(harness.keyed_state().values())
