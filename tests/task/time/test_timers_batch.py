"""The timers of batch jobs. The facts are those of Flink's BatchExecutionInternalTimeServiceTest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.datastream import KeyedProcessFunction
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.task.time.clock import SubtaskClock
from firesteel.task.time.timers import BatchTimerService
from firesteel.testing import OperatorHarness


class Service:
    """A timer service with one key, and the timers that fired."""

    def __init__(self, on_fire: Callable[[BatchTimerService, int], None] = lambda *_: None) -> None:
        self.fired: list[int] = []

        def fire(key: Any, namespace: Any, time: int) -> None:
            self.fired.append(time)
            on_fire(self.timers, time)

        self.timers = BatchTimerService(
            "test", HashMapKeyedStateBackend(), SubtaskClock(), fire, fire
        )

    def event(self, *times: int) -> None:
        for time in times:
            self.timers.register_event_time_timer(1, None, time)

    def processing(self, *times: int) -> None:
        for time in times:
            self.timers.register_processing_time_timer(1, None, time)


def test_the_end_of_a_key_fires_its_timers_and_a_watermark_does_not() -> None:
    service = Service()
    service.event(123)
    service.timers.advance_watermark(1000)
    service.timers.delete_event_time_timer(1, None, 123)
    service.event(150)
    assert service.fired == []
    service.timers.end_key()
    assert service.fired == [150]
    service.timers.end_key()
    assert service.fired == [150]


def test_timers_fire_in_order_event_time_first() -> None:
    service = Service()
    service.processing(30, 10)
    service.event(MAX_WATERMARK, 20, 5, 20)
    service.timers.end_key()
    assert service.fired == [5, 20, MAX_WATERMARK, 10, 30]


def test_the_clock_does_not_fire_timers() -> None:
    service = Service()
    service.processing(150)
    assert not service.timers.advance_processing_time(10**15)
    assert service.fired == []
    service.timers.end_key()
    assert service.fired == [150]


def test_timers_from_within_a_callback_are_ignored() -> None:
    def again(timers: BatchTimerService, time: int) -> None:
        timers.register_event_time_timer(1, None, time + 20)
        timers.register_processing_time_timer(1, None, time + 20)

    service = Service(again)
    service.event(150)
    service.processing(160)
    service.timers.end_key()
    service.timers.end_key()
    assert service.fired == [150, 160]


def test_a_timer_can_be_deleted_from_within_a_callback() -> None:
    service = Service(lambda timers, time: timers.delete_event_time_timer(1, None, time + 1))
    service.event(1, 2, 3, 4)
    service.timers.end_key()
    assert service.fired == [1, 3]


class Watermarks(KeyedProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Any:
        yield "record", value, ctx.timer_service().current_watermark()
        ctx.timer_service().register_event_time_timer(123)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield "timer", ctx.get_current_key(), ctx.timer_service().current_watermark()


def test_the_watermark_is_at_the_beginning_until_timers_fire() -> None:
    def program(numbers: Any) -> Any:
        return numbers.key_by(lambda n: n).process(Watermarks())

    with OperatorHarness.of(program, batch=True) as harness:
        harness.process_elements([2, 1, 2], [5, 6, 4])
        harness.process_watermark(1000)
        harness.finish()
        assert harness.output == [
            ("record", 1, MIN_WATERMARK),
            ("timer", 1, MAX_WATERMARK),
            ("record", 2, MIN_WATERMARK),
            ("record", 2, MIN_WATERMARK),
            ("timer", 2, MAX_WATERMARK),
        ]
