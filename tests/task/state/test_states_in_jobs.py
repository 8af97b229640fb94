"""State of user functions in whole jobs: faults of slots neither lose nor double it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from firesteel.common import Configuration, Time, Types
from firesteel.datastream.functions import KeyedBroadcastProcessFunction, KeyedProcessFunction
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.testing import Fault, JobHarness, ScriptedSource, Timed

LONG = Types.LONG()


class Everything(KeyedProcessFunction):
    """Uses every kind of state, and timers; results show all of it."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", LONG))
        self.recent = runtime_context.get_list_state(ListStateDescriptor("recent", LONG))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", LONG, LONG))
        self.largest = runtime_context.get_reducing_state(
            ReducingStateDescriptor("largest", max, LONG)
        )
        living = ValueStateDescriptor("living", LONG)
        living.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.living = runtime_context.get_state(living)

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        self.recent.add(value)
        if len(self.recent.get()) > 3:
            self.recent.update(self.recent.get()[-2:])
        self.seen.put(value % 5, self.count.value())
        if value % 4 == 0:
            self.seen.remove((value + 1) % 5)
        self.largest.add(value)
        self.living.update(value)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() // 10 * 10 + 10)
        yield self._shown(ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ("timer", timestamp, self._shown(ctx))
        if timestamp % 40 == 0:
            for state in (self.count, self.recent, self.seen, self.largest, self.living):
                state.clear()

    def _shown(self, ctx: Any) -> tuple[Any, ...]:
        return (
            ctx.get_current_key(),
            self.count.value(),
            tuple(self.recent.get()),
            tuple(sorted(self.seen.items())),
            self.largest.get(),
            self.living.value(),
        )


_SCRIPT = [Timed(number * 7 % 41, number) for number in range(120)]


def _program(env: Any) -> Any:
    stream = env.from_source(ScriptedSource(_SCRIPT), None, "s")
    return stream.key_by(lambda v: v % 3).process(Everything())


def _run(backend: str, faults: Any = None, inline_threshold: int = 1 << 16) -> list[Any]:
    configuration = Configuration()
    configuration.set_string("state.backend.type", backend)
    harness = JobHarness(
        _program,
        parallelism=2,
        records_per_epoch=7,
        inline_threshold=inline_threshold,
        configuration=configuration,
    )
    harness.run(faults)
    return sorted(harness.collected, key=repr)


@pytest.fixture(scope="module")
def clean() -> list[Any]:
    results = _run("hashmap")
    assert len(results) > 150
    return results


@pytest.mark.parametrize("inline_threshold", [0, 1 << 16])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_backends_agree(clean: list[Any], backend: str, inline_threshold: int) -> None:
    assert _run(backend, inline_threshold=inline_threshold) == clean


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_no_fault_shows_in_the_results(clean: list[Any], backend: str, fault: Fault) -> None:
    faults = {epoch: {(1, 0): fault, (1, 1): fault} for epoch in range(2, 18, 3)}
    assert _run(backend, faults, inline_threshold=0) == clean


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_no_mixture_of_faults_shows_in_the_results(
    clean: list[Any], backend: str, seed: int
) -> None:
    chance = random.Random(seed)
    places = [(0, 0), (0, 1), (1, 0), (1, 1)]
    faults = {
        epoch: {place: chance.choice(list(Fault)) for place in places if chance.random() < 0.3}
        for epoch in range(1, 20)
    }
    assert _run(backend, faults, inline_threshold=chance.choice([0, 1 << 16])) == clean


RULES = MapStateDescriptor("rules", Types.STRING(), LONG)
SUM = ValueStateDescriptor("sum", LONG)


class Scaled(KeyedBroadcastProcessFunction):
    """Sums per key; a broadcast factor multiplies all sums."""

    def open(self, runtime_context: Any) -> None:
        self.sum = runtime_context.get_state(SUM)

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.sum.update((self.sum.value() or 0) + value)
        yield "sum", ctx.get_current_key(), self.sum.value()

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        state = ctx.get_broadcast_state(RULES)
        state.put("factors", (state.get("factors") or 0) + 1)
        ctx.apply_to_keyed_state(SUM, lambda key, total: total.update(total.value() * value))
        yield "factors", state.get("factors"), None


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_broadcast_state_comes_back_too(backend: str, fault: Fault) -> None:
    def program(env: Any) -> Any:
        numbers = env.from_source(ScriptedSource(range(1, 30)), None, "numbers")
        factors = env.from_source(ScriptedSource([2, 1, 3, 1, 1]), None, "factors")
        return numbers.key_by(lambda v: v % 4).connect(factors.broadcast(RULES)).process(Scaled())

    def run(faults: Any = None) -> list[Any]:
        configuration = Configuration()
        configuration.set_string("state.backend.type", backend)
        # The same seed: which input comes first within an epoch is decided alike.
        harness = JobHarness(
            program, parallelism=2, records_per_epoch=3, configuration=configuration
        )
        harness.run(faults)
        return sorted(harness.collected, key=repr)

    expected = run()
    assert [n for kind, n, _ in expected if kind == "factors"] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    lost = {epoch: {(1, 0): fault, (1, 1): fault} for epoch in (2, 4, 5)}
    results = run(lost)
    if fault not in (Fault.BREAK_OFF, Fault.LOSE_INPUT):
        assert results == expected
    assert sorted(n for kind, n, _ in results if kind == "factors") == [
        n for kind, n, _ in expected if kind == "factors"
    ]
