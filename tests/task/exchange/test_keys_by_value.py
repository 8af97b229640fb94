"""Jobs whose keys Python cannot hash."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Configuration, Time, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeExecutionMode
from firesteel.datastream.functions import ProcessWindowFunction
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import JobHarness
from tests.thoroughness import examples


class Count(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


class Sizes(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, len(list(elements))


_KEYS: dict[str, Any] = {
    "list": (lambda n: [n % 3, [n % 2]], None),
    "dict": (lambda n: {"a": n % 3, "b": [n % 2]}, None),
    "tuple with a list": (lambda n: (n % 3, [n % 2]), None),
    "array": (lambda n: array("i", [n % 3, n % 2]), None),
    "declared list": (lambda n: [n % 3, n % 2], Types.LIST(Types.LONG())),
    "declared map": (lambda n: {"a": n % 6}, Types.MAP(Types.STRING(), Types.LONG())),
    "declared array": (lambda n: [n % 6], Types.PRIMITIVE_ARRAY(Types.LONG())),
}


def _backend(kind: str) -> Configuration:
    return Configuration().set_string("state.backend.type", kind)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("keys", _KEYS)
def test_state_is_found_by_the_value_of_the_key(backend: str, keys: str) -> None:
    select, key_type = _KEYS[keys]

    def program(env: Any) -> Any:
        numbers = env.from_collection(list(range(60))).uid("numbers")
        return numbers.key_by(select, key_type).process(Count()).uid("count")

    harness = JobHarness(
        program,
        parallelism=2,
        records_per_epoch=5,
        checkpoint_every=2,
        configuration=_backend(backend),
    )
    for _ in range(4):
        harness.run_epoch()
    harness.crash()
    harness = harness.resume(harness.stop(), parallelism=3)
    harness.run()
    counts = harness.keyed_state()["count"]["count"]
    assert sorted(counts.values()) == [10] * 6
    assert all(key in [select(n) for n in range(6)] for key in counts)


@settings(max_examples=examples(20), deadline=None)
@given(
    records=st.lists(st.lists(st.integers(0, 2), max_size=2), min_size=1, max_size=20),
    batch=st.booleans(),
)
def test_windows_and_reductions_group_by_the_value_of_the_key(
    records: list[list[int]], batch: bool
) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda *_: 0)

    def program(env: Any) -> Any:
        if batch:
            env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        lists = env.from_collection(records).assign_timestamps_and_watermarks(strategy)
        keyed = lists.key_by(lambda record: record)
        return keyed.window(TumblingEventTimeWindows.of(Time.seconds(1))).process(Sizes())

    harness = JobHarness(program, parallelism=2)
    harness.run()
    expected = {tuple(record): records.count(record) for record in records}
    assert {tuple(key): count for key, count in harness.collected} == expected
    assert len(harness.collected) == len(expected)
