"""Timers in a whole job: the driver's clock ticks for them, and faults do not lose or double them."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.datastream.functions import KeyedProcessFunction
from firesteel.testing import Fault, JobHarness, Pause, ScriptedSource, Timed


class After(KeyedProcessFunction):
    """Emits (key, milliseconds that it waited beyond the timer's time)."""

    def __init__(self, millis: int) -> None:
        self._millis = millis

    def process_element(self, value: Any, ctx: Any) -> None:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + self._millis)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), ctx.timer_service().current_processing_time() - timestamp


@pytest.mark.parametrize("pause", [1.0, 3600.0])
def test_a_processing_time_timer_fires_when_due_although_no_data_flows(pause: float) -> None:
    def program(env: Any) -> Any:
        source = ScriptedSource(["a", "b", Pause(pause), "c"], bounded=False)
        return env.from_source(source, None, "s").key_by(lambda v: v).process(After(30_000))

    harness = JobHarness(program, parallelism=2)
    epochs = 0
    while len(harness.collected) < 2:
        harness.run_epoch()
        epochs += 1
        assert epochs < 1000
    assert sorted(key for key, _ in harness.collected) == ["a", "b"]
    # Within two epochs of its time; an idle epoch takes a tenth of a second here.
    assert all(0 <= late <= 200 for _, late in harness.collected)
    if pause > 60:
        # The job slept until then, it did not look again and again.
        assert epochs <= 5


class CountThenEmit(KeyedProcessFunction):
    """Every key's timers fire in order, once each, whatever happens to slots."""

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), timestamp


@pytest.mark.parametrize("fault", Fault)
def test_a_fault_neither_loses_nor_doubles_a_timer(fault: Fault) -> None:
    script = [Timed(f"key {number % 7}", number) for number in range(100)]

    def program(env: Any) -> Any:
        stream = env.from_source(ScriptedSource(script), None, "s")
        return stream.key_by(lambda v: v).process(CountThenEmit())

    harness = JobHarness(program, parallelism=2, records_per_epoch=9)
    harness.run({epoch: dict.fromkeys(harness.places(), fault) for epoch in range(2, 30, 3)})
    expected = [(f"key {number % 7}", number + 10) for number in range(100)]
    assert sorted(harness.collected) == sorted(expected)
    for key in {key for key, _ in expected}:
        times = [time for other, time in harness.collected if other == key]
        assert times == sorted(times)
