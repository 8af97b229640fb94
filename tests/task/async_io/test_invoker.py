"""Timeouts and retries on a clock that jumps to the next due time whenever nothing is left to do."""

from __future__ import annotations

import asyncio
import selectors
from queue import SimpleQueue
from typing import Any

from firesteel.common import Time
from firesteel.datastream.async_retry_strategies import NO_RETRY_STRATEGY
from firesteel.datastream.functions import (
    AsyncFunction,
    AsyncFunctionDescriptor,
    AsyncRetryStrategy,
)
from firesteel.task.async_io.invoker import AsyncInvoker, AsyncRequest


class _JumpingSelector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _JumpingSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


class Log(AsyncFunction[Any, Any]):
    """``behavior(value, attempt)`` gives the seconds a request takes, and its result."""

    def __init__(self, behavior: Any) -> None:
        self._behavior = behavior
        self.begun: list[tuple[Any, float]] = []

    async def async_invoke(self, value: Any) -> list[Any]:
        self.begun.append((value, _now()))
        attempt = sum(begun == value for begun, _ in self.begun)
        seconds, result = self._behavior(value, attempt)
        await asyncio.sleep(seconds)
        if isinstance(result, Exception):
            raise result
        return [result]

    def timeout(self, value: Any) -> list[Any]:
        return [("timeout", value, _now())]


def _now() -> float:
    return round(asyncio.get_running_loop().time(), 3)


def run(
    function: AsyncFunction[Any, Any],
    starts: dict[Any, float],
    timeout: Time,
    strategy: AsyncRetryStrategy[Any] = NO_RETRY_STRATEGY,
) -> dict[Any, Any]:
    """Start each record at its time; what became of each."""
    completed: SimpleQueue[AsyncRequest] = SimpleQueue()
    ordered = AsyncFunctionDescriptor.OutputMode.ORDERED
    descriptor = AsyncFunctionDescriptor(function, timeout, 100, strategy, ordered)
    invoker = AsyncInvoker(descriptor, completed)

    async def all_of_it() -> None:
        for value, at in starts.items():
            await asyncio.sleep(at - asyncio.get_running_loop().time())
            invoker.start([AsyncRequest(value, None)])
        await asyncio.sleep(1000)

    loop = _JumpingLoop()
    try:
        loop.run_until_complete(all_of_it())
    finally:
        loop.close()
    ended = [completed.get_nowait() for _ in range(completed.qsize())]
    return {request.value: request.error or request.results for request in ended}


def test_the_timeout_counts_for_each_record_from_its_own_start():
    function = Log(lambda value, _: (10 if value == "slow" else 4, value))
    outcome = run(function, {"a": 0, "b": 4, "slow": 5, "c": 8}, Time.seconds(5))
    assert outcome == {"a": ["a"], "b": ["b"], "slow": [("timeout", "slow", 10)], "c": ["c"]}


def test_no_timeout_waits_for_ever():
    assert run(Log(lambda value, _: (900, value)), {"a": 0}, Time.seconds(0)) == {"a": ["a"]}


def test_a_late_answer_does_not_come_after_that_of_the_timeout():
    class Stubborn(Log):
        async def async_invoke(self, value: Any) -> list[Any]:
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                await asyncio.sleep(10)
            return ["late"]

    outcome = run(Stubborn(None), {"a": 0}, Time.seconds(5))
    assert outcome == {"a": [("timeout", "a", 5)]}


def _fails_until(attempt: int) -> Any:
    return lambda value, now: (0, value if now >= attempt else OSError(f"attempt {now}"))


def test_fixed_delay_between_attempts():
    function = Log(_fails_until(4))
    strategy = AsyncRetryStrategy.fixed_delay(3, 500, None, lambda error: True)
    assert run(function, {"a": 0}, Time.seconds(60), strategy) == {"a": ["a"]}
    assert [at for _, at in function.begun] == [0, 0.5, 1.0, 1.5]


def test_exponential_delay_of_each_record_on_its_own():
    function = Log(_fails_until(5))
    strategy = AsyncRetryStrategy.exponential_backoff(9, 100, 300, 2.0, None, lambda error: True)
    assert run(function, {"a": 0, "b": 0.1}, Time.seconds(60), strategy) == {"a": ["a"], "b": ["b"]}
    assert [at for value, at in function.begun if value == "a"] == [0, 0.1, 0.3, 0.6, 0.9]
    assert [at for value, at in function.begun if value == "b"] == [0.1, 0.2, 0.4, 0.7, 1.0]


def test_the_timeout_bounds_all_attempts_together():
    function = Log(_fails_until(99))
    strategy = AsyncRetryStrategy.fixed_delay(99, 2000, None, lambda error: True)
    outcome = run(function, {"a": 0}, Time.seconds(5), strategy)
    assert outcome == {"a": [("timeout", "a", 5)]}
    assert [at for _, at in function.begun] == [0, 2, 4]


def test_predicates_choose_what_is_tried_again():
    def behavior(value: Any, attempt: int) -> Any:
        return 0, {"fatal": ValueError("no"), "odd": attempt}.get(value, OSError("again"))

    strategy = AsyncRetryStrategy.fixed_delay(
        2, 100, lambda results: results[0] < 3, lambda error: isinstance(error, OSError)
    )
    function = Log(behavior)
    outcome = run(function, {"fatal": 0, "odd": 0, "down": 0}, Time.seconds(60), strategy)
    assert isinstance(outcome["fatal"], ValueError)
    assert outcome["odd"] == [3]
    assert isinstance(outcome["down"], OSError)
    begun = [value for value, _ in function.begun]
    assert {value: begun.count(value) for value in begun} == {"fatal": 1, "odd": 3, "down": 3}
