"""A failing user function on Spark: the error that the user sees."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from firesteel.common import JobStatus, Types
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.functions import MapFunction, SinkFunction
from firesteel.errors import InsufficientSlotsError, TypeMismatchError, UserFunctionError
from firesteel.usercode.loading import UnloadableFunctionError
from tests.integration.conftest import SLOTS, MakeEnvironment


def divide_into_100(value: int) -> float:
    return 100 / value


def test_the_error_names_job_operator_function_line_and_record_and_shows_the_users_traceback_first(
    env: StreamExecutionEnvironment,
) -> None:
    stream = env.from_collection([4, 2, 0, 1]).key_by(lambda x: x)
    stream.map(divide_into_100).print()
    with pytest.raises(UserFunctionError) as caught:
        env.execute("division")
    error = caught.value
    assert error.job == "division"
    assert error.operator == "Map"
    assert error.function == "divide_into_100"
    assert error.file == divide_into_100.__code__.co_filename
    assert error.line == divide_into_100.__code__.co_firstlineno
    assert error.record == "0"
    text = str(error)
    assert text.index("ZeroDivisionError") < text.index("division")
    assert "return 100 / value" in text
    assert "firesteel/task" not in error.traceback_text
    assert "java" not in text.lower()


def _rebuild(driver: int) -> object:
    if os.getpid() == driver:
        return Unloadable()
    raise LookupError("no license on this machine")


class Unloadable(MapFunction):
    """Leaves the driver, but cannot be rebuilt anywhere else."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (os.getpid(),)

    def map(self, value: int) -> int:
        return value


@pytest.mark.parametrize(
    ("mode", "where"),
    [
        (RuntimeExecutionMode.STREAMING, "resident"),
        (RuntimeExecutionMode.STREAMING, "in-worker"),
        (RuntimeExecutionMode.BATCH, "in-worker"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_named_with_its_operator_and_why(
    make_env: MakeEnvironment, mode: RuntimeExecutionMode, where: str
) -> None:
    env = make_env(firesteel_slot__host=where).set_runtime_mode(mode)
    env.from_collection([4, 2]).key_by(lambda x: x).map(Unloadable()).name("licensed").print()
    with pytest.raises(UnloadableFunctionError) as caught:
        env.execute("loading")
    error = caught.value
    assert (error.job, error.operator, error.cause) == ("loading", "licensed", "LookupError")
    assert str(error).startswith("Traceback")
    assert "no license on this machine" in str(error)


def test_a_job_that_failed_has_status_failed_and_the_environment_goes_on(
    env: StreamExecutionEnvironment,
) -> None:
    env.from_collection([0]).map(divide_into_100).print()
    client = env.execute_async("fails")
    with pytest.raises(UserFunctionError):
        client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FAILED
    with env.from_collection([5]).map(divide_into_100).execute_and_collect() as results:
        assert list(results) == [20.0]


def test_a_value_that_does_not_fit_the_output_type_is_an_error_with_operator_value_and_type(
    env: StreamExecutionEnvironment,
) -> None:
    env.from_collection([1, 2]).map(str, output_type=Types.INT()).name("to text").print()
    with pytest.raises(TypeMismatchError, match=r"to text.*'[12]'.*(?i:int)"):
        env.execute("types")


class FailingOpen(MapFunction):
    def open(self, runtime_context: object) -> None:
        raise OSError("no connection")

    def map(self, value: int) -> int:
        return value


def test_a_failure_in_open_is_explained(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).map(FailingOpen()).print()
    with pytest.raises(UserFunctionError, match="no connection") as caught:
        env.execute("open")
    assert "FailingOpen.open" in caught.value.function


class FailingSink(SinkFunction):
    def invoke(self, value: int, context: SinkFunction.Context) -> None:
        if value == 3:
            raise ValueError("bad record")


def test_a_failure_in_a_sink_function_names_the_record(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1, 2, 3, 4]).add_sink(FailingSink())
    with pytest.raises(UserFunctionError, match="bad record") as caught:
        env.execute("sink")
    assert caught.value.record == "3"


def gives_up(value: int) -> int:
    if value == 2:
        raise asyncio.CancelledError("gave up")
    return value


def test_what_is_no_exception_is_a_failure_and_no_death_of_a_process(
    env: StreamExecutionEnvironment,
) -> None:
    env.from_collection([1, 2, 3]).map(gives_up).print()
    with pytest.raises(UserFunctionError, match="CancelledError: gave up") as caught:
        env.execute("giving up")
    assert (caught.value.operator, caught.value.record) == ("Map", "2")


@pytest.mark.execution("micro-batch")
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_failure_of_a_writer_of_dataframes_names_its_operator(
    env: StreamExecutionEnvironment, mode: str
) -> None:
    env.set_runtime_mode(RuntimeExecutionMode[mode])

    def write(frame: object, epoch: int) -> None:
        raise ValueError("no such table")

    env.from_collection([1], Types.LONG()).to_dataframe(write).name("table")
    with pytest.raises(UserFunctionError, match="no such table") as caught:
        env.execute("frames")
    assert (caught.value.job, caught.value.operator) == ("frames", "Sink: table")
    assert caught.value.function.endswith("write")


def test_too_few_slots_is_an_error_that_says_how_many_are_needed(
    make_env: MakeEnvironment,
) -> None:
    env = make_env(parallelism=SLOTS + 1)
    env.from_collection([1]).rebalance().map(lambda x: x).print()
    with pytest.raises(InsufficientSlotsError, match=f"{SLOTS + 1}") as caught:
        env.execute("wide")
    assert (caught.value.required, caught.value.available) == (SLOTS + 1, SLOTS)


class FlakyMap(MapFunction):
    """Fails the first time it runs, in whatever process that is."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def map(self, value: int) -> int:
        if value == 5 and not self._mark.exists():
            self._mark.touch()
            raise OSError("passing fault")
        return value


def test_a_failed_task_of_a_batch_job_is_run_again(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = env.from_collection(range(10)).rebalance().map(FlakyMap(tmp_path / "failed"))
    with stream.execute_and_collect() as results:
        assert sorted(results) == list(range(10))
    assert (tmp_path / "failed").exists()


def test_a_batch_job_that_fails_every_time_gives_the_users_error(
    env: StreamExecutionEnvironment,
) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_collection([0]).map(divide_into_100).print()
    with pytest.raises(UserFunctionError, match="ZeroDivisionError"):
        env.execute("batch division")
