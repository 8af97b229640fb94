"""A StopIteration of a user's function is a failure, not the end of its records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firesteel.common import Encoder, Time, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.functions import (
    AggregateFunction,
    CoMapFunction,
    FlatJoinFunction,
)
from firesteel.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from firesteel.errors import UserFunctionError
from firesteel.testing import JobHarness


def _stops_at_two(value: Any) -> Any:
    return next(iter([])) if value == 2 else value


def _stops_in_a_list(value: Any) -> list[Any]:
    return [_stops_at_two(value)]


class _CoMap(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return _stops_at_two(value)

    def map2(self, value: Any) -> Any:
        return value


class _Result(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return value

    def get_result(self, accumulator: int) -> Any:
        return _stops_at_two(accumulator)

    def merge(self, a: int, b: int) -> int:
        return max(a, b)


class _FlatJoin(FlatJoinFunction):
    def join(self, first: Any, second: Any) -> list[Any]:
        return _stops_in_a_list(first)


class _Encoder(Encoder):
    def encode(self, value: Any) -> bytes:
        return str(_stops_at_two(value)).encode()


class _Stamp(TimestampAssigner):
    def __init__(self, extract: Callable[[Any], int]) -> None:
        self._extract = extract

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self._extract(value)


def _numbers(env: StreamExecutionEnvironment) -> Any:
    return env.from_collection([1, 2, 3, 4])


def _timed(env: StreamExecutionEnvironment, extract: Callable[[Any], int] = int) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    return _numbers(env).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(_Stamp(extract))
    )


def _windows() -> Any:
    return TumblingEventTimeWindows.of(Time.milliseconds(10))


def _sliding() -> Any:
    return SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))


def _sessions() -> Any:
    return EventTimeSessionWindows.with_gap(Time.milliseconds(10))


def _joined(env: StreamExecutionEnvironment) -> Any:
    joined = _timed(env).join(_timed(env)).where(lambda v: v).equal_to(lambda v: v)
    return joined.window(_windows())


_PIPELINES: dict[str, tuple[Callable[[StreamExecutionEnvironment], Any], str]] = {
    "flat_map": (lambda env: _numbers(env).flat_map(_stops_in_a_list), "_stops_in_a_list"),
    "flat_map with timestamps": (
        lambda env: _timed(env).flat_map(_stops_in_a_list),
        "_stops_in_a_list",
    ),
    "keyed flat_map": (
        lambda env: _numbers(env).key_by(lambda v: 0).flat_map(_stops_in_a_list),
        "_stops_in_a_list",
    ),
    "co_map": (lambda env: _numbers(env).connect(_numbers(env)).map(_CoMap()), "_CoMap.map1"),
    "timestamp assigner": (lambda env: _timed(env, _stops_at_two), "_Stamp.extract_timestamp"),
    "get_result": (
        lambda env: _timed(env).key_by(lambda v: v).window(_windows()).aggregate(_Result()),
        "_Result.get_result",
    ),
    "get_result of a sliding window": (
        lambda env: _timed(env).key_by(lambda v: v).window(_sliding()).aggregate(_Result()),
        "_Result.get_result",
    ),
    "get_result of a session": (
        lambda env: _timed(env).key_by(lambda v: v).window(_sessions()).aggregate(_Result()),
        "_Result.get_result",
    ),
    "window join": (
        lambda env: _joined(env).apply(lambda left, right: _stops_at_two(left)),
        "<lambda>",
    ),
    "flat window join": (lambda env: _joined(env).apply(_FlatJoin()), "_FlatJoin.join"),
    "datagen": (
        lambda env: env.from_source(
            DataGeneratorSource(_stops_at_two, 5), WatermarkStrategy.no_watermarks(), "numbers"
        ),
        "_stops_at_two",
    ),
}


@pytest.mark.parametrize("name", _PIPELINES)
def test_it_fails_the_job_with_the_name_of_the_function(name: str) -> None:
    build, function = _PIPELINES[name]
    with pytest.raises(UserFunctionError, match="StopIteration") as caught:
        JobHarness(build).run()
    assert caught.value.function.endswith(function)
    assert caught.value.operator
    if "get_result" not in name and "join" not in name:
        assert caught.value.record == "2"


def test_it_fails_a_file_sink(tmp_path: Any) -> None:
    sink = FileSink.for_row_format(str(tmp_path), _Encoder()).build()
    with pytest.raises(UserFunctionError, match="StopIteration"):
        JobHarness(lambda env: _numbers(env).sink_to(sink)).run()
