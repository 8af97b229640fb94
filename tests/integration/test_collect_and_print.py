"""Results in the driver: print, execute_and_collect, metrics, reuse of an environment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common import Row, Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import OutputTag, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.functions import MapFunction, ProcessFunction, RuntimeContext
from firesteel.errors import UserFunctionError
from tests.integration.conftest import MakeEnvironment


def test_print_writes_to_standard_output_and_nothing_else_does(
    make_env: MakeEnvironment, capfd: pytest.CaptureFixture[str]
) -> None:
    env = make_env(parallelism=1)
    env.from_collection([("a", 1), ("b", 2)]).print()
    env.from_collection([Row("c", 3)], Types.ROW([Types.STRING(), Types.INT()])).print("rows")
    env.execute("printing")
    assert sorted(capfd.readouterr().out.splitlines()) == [
        "('a', 1)",
        "('b', 2)",
        "rows> +I[c,3]",
    ]


def test_print_names_the_subtask_when_there_are_several(
    make_env: MakeEnvironment, capfd: pytest.CaptureFixture[str]
) -> None:
    env = make_env(parallelism=2)
    env.from_collection([1, 2, 3, 4]).rebalance().print("n")
    env.execute("prefix")
    lines = capfd.readouterr().out.split()
    assert sorted({line for line in lines if line.endswith(">")}) == ["n:1>", "n:2>"]


def test_collect_streams_results_while_an_endless_job_runs(make_env: MakeEnvironment) -> None:
    env = make_env(parallelism=1)
    source = DataGeneratorSource(lambda i: i, 1_000_000, RateLimiterStrategy.per_second(200))
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "slow numbers")
    with stream.execute_and_collect() as results:
        assert [next(results) for _ in range(50)] == list(range(50))
    assert stream.map(lambda x: -x).execute_and_collect(limit=3) == [0, -1, -2]


def test_several_streams_of_one_job_are_collected_and_learn_how_it_ended(
    make_env: MakeEnvironment,
) -> None:
    env = make_env(parallelism=2)
    numbers = env.from_collection([3, 2, 1, 0])
    doubled = numbers.map(lambda n: 2 * n).collect_async()
    kept = numbers.filter(lambda n: n > 1).collect_async()
    env.execute_async("two collectors").get_job_execution_result().result()
    assert sorted(doubled) == [0, 2, 4, 6]
    assert sorted(kept) == [2, 3]

    broken = env.from_collection([1, 0]).map(lambda n: 1 // n).collect_async()
    ignored = env.from_collection([1]).collect_async()
    ignored.close()
    env.execute_async("broken")
    with pytest.raises(UserFunctionError, match="ZeroDivisionError"):
        list(broken)


def test_an_environment_runs_only_what_was_added_since(env: StreamExecutionEnvironment) -> None:
    with env.from_collection([1]).execute_and_collect() as results:
        assert list(results) == [1]
    with env.from_collection([2]).execute_and_collect() as results:
        assert list(results) == [2]


class Measuring(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        self._count = group.counter("count")
        self._sizes = group.distribution("sizes")
        group.gauge("last", lambda: self._last)
        self._meter = group.meter("rate")
        self._last = 0

    def map(self, value: int) -> int:
        self._count.inc(value)
        self._sizes.update(value)
        self._meter.mark_event()
        self._last = value
        return value


def test_metrics_of_user_functions_reach_the_client(make_env: MakeEnvironment) -> None:
    env = make_env(parallelism=2)
    env.from_collection([1, 2, 3]).rebalance().map(Measuring()).name("m").print()
    client = env.execute_async("metrics")
    client.get_job_execution_result().result()
    metrics = client.get_metrics()
    assert metrics["m.count"]["count"] == 6
    assert metrics["m.sizes"]["max"] == 3
    assert metrics["m.rate"]["count"] == 3
    assert set(metrics["m.last"]["values"]) == {2, 3}
    assert client.get_accumulators().result()["m.count"] == 6


class Where(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._context = runtime_context

    def map(self, value: int) -> tuple[str, int, int]:
        context = self._context
        return (
            context.get_task_name_with_subtasks(),
            context.get_index_of_this_subtask(),
            context.get_number_of_parallel_subtasks(),
        )


def test_the_runtime_context_tells_the_subtask(make_env: MakeEnvironment) -> None:
    env = make_env(parallelism=2)
    stream = env.from_collection(range(4)).rebalance().map(Where()).name("where")
    with stream.execute_and_collect() as results:
        assert set(results) == {("where (1/2)", 0, 2), ("where (2/2)", 1, 2)}


LATE = OutputTag("odd")


class SplitOdd(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        if value % 2:
            yield LATE, value
        else:
            yield value


def test_side_outputs_and_functions_of_the_test_module(env: StreamExecutionEnvironment) -> None:
    base = threading.main_thread().name  # a closure over something of the driver
    main = env.from_collection(range(6)).process(SplitOdd())
    odd = main.get_side_output(LATE).map(lambda x: (base, x))
    with odd.union(main.map(lambda x: ("even", x))).execute_and_collect() as results:
        assert sorted(results) == sorted(
            [(base, 1), (base, 3), (base, 5), ("even", 0), ("even", 2), ("even", 4)]
        )
