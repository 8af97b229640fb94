"""Errors of failed jobs name the operator, the function, the record and a fix."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.functions import AggregateFunction, MapFunction
from firesteel.datastream.window import TumblingProcessingTimeWindows
from firesteel.errors import TypeMismatchError, UserFunctionError
from firesteel.testing import JobHarness
from firesteel.usercode.failures import InterruptedSlotError
from firesteel.usercode.unpicklable import UnpicklableFunctionError, UnpicklableRecordError


class _Connected(MapFunction):
    def __init__(self) -> None:
        self.connection = threading.Lock()

    def map(self, value: Any) -> Any:
        return value


def _around(lock: Any) -> Callable[[Any], Any]:
    return lambda value: lock and value


_UNPICKLABLE: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "attribute": (
        lambda s: s.map(_Connected()).name("enrich"),
        "Operator 'enrich'",
        "the _Connected object cannot .* the attribute 'connection' is a _thread.lock",
    ),
    "closure": (
        lambda s: s.map(_around(threading.Lock())).name("enrich"),
        "Operator 'enrich'",
        r"_around.<locals>.<lambda> \(.*test_failures_in_jobs.py:.* the variable 'lock' is a",
    ),
    "key selector": (
        lambda s: s.key_by(_around(threading.Lock())).sum(),
        "Operator 'key_by after Source: Collection Source'",
        "the variable 'lock' is a",
    ),
}


@pytest.mark.parametrize("name", _UNPICKLABLE)
def test_a_function_that_cannot_travel_is_named_with_what_it_holds(name: str) -> None:
    build, operator, reason = _UNPICKLABLE[name]
    with pytest.raises(UnpicklableFunctionError, match=reason) as caught:
        JobHarness(lambda env: build(env.from_collection([1]))).run()
    assert operator in str(caught.value)
    assert "in open()" in str(caught.value)


def test_a_collected_record_that_cannot_be_pickled_is_named() -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([1, 2]).map(lambda v: (v, threading.Lock()) if v == 2 else v)

    with pytest.raises(UnpicklableRecordError) as caught:
        JobHarness(build).run()
    assert caught.value.record.startswith("(2, <unlocked _thread.lock")
    assert caught.value.job == "harness"


class _OwnError(BaseException):
    """Derives from BaseException, as in some libraries, so that it is not caught by chance."""


_ENDS = {"exit": SystemExit(3), "cancel": asyncio.CancelledError(3), "own": _OwnError(3)}


class _Leaves:
    """A function that wants to end more than itself."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __call__(self, value: Any) -> Any:
        if value == 2:
            raise self._error
        return value


class _LeavingAggregate(AggregateFunction):
    def __init__(self, leaves: Callable[[Any], Any]) -> None:
        self._leaves = leaves

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return int(self._leaves(value))

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, a: int, b: int) -> int:
        return a


class _LeavingClose(MapFunction):
    def __init__(self, leaves: Callable[[Any], Any]) -> None:
        self._leaves = leaves

    def map(self, value: Any) -> Any:
        return value

    def close(self) -> None:
        self._leaves(2)


_LEAVING: dict[str, Callable[[Any, Any], Any]] = {
    "map": lambda s, leaves: s.map(leaves),
    "fused": lambda s, leaves: s.map(leaves).map(str),
    "flat_map": lambda s, leaves: s.flat_map(lambda v: [leaves(v)]),
    "key selector": lambda s, leaves: s.key_by(leaves).sum(),
    "window": lambda s, leaves: (
        s.key_by(lambda v: 0)
        .window(TumblingProcessingTimeWindows.of(Time.seconds(1)))
        .aggregate(_LeavingAggregate(leaves))
    ),
    "close": lambda s, leaves: s.map(_LeavingClose(leaves)),
}


@pytest.mark.parametrize("end", _ENDS)
@pytest.mark.parametrize("name", _LEAVING)
def test_what_is_no_exception_is_a_failure_of_the_function_that_raised_it(
    name: str, end: str
) -> None:
    error = _ENDS[end]
    with pytest.raises(UserFunctionError, match=rf"{type(error).__name__}: 3") as caught:
        JobHarness(lambda env: _LEAVING[name](env.from_collection([1, 2, 3]), _Leaves(error))).run()
    assert caught.value.job == "harness"
    assert caught.value.operator
    assert caught.value.cause == type(error).__name__
    if name not in ("window", "close") and end != "own":
        assert caught.value.record == "2"


def test_a_source_is_held_to_the_type_that_a_program_declares_for_it() -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        source = NumberSequenceSource(1, 3)
        return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.STRING())

    with pytest.raises(TypeMismatchError, match=r"'Source: numbers'.*does not fit"):
        JobHarness(build).run()


@pytest.mark.parametrize("end", [InterruptedSlotError(), KeyboardInterrupt()])
@pytest.mark.parametrize("name", [name for name in _LEAVING if name != "close"])
def test_what_ends_the_work_from_outside_is_no_failure(name: str, end: BaseException) -> None:
    with pytest.raises(type(end)):
        JobHarness(lambda env: _LEAVING[name](env.from_collection([1, 2, 3]), _Leaves(end))).run()
