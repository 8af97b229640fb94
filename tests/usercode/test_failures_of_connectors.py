"""Errors of user-defined sources and sinks name the operator, the method and the record."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import firesteel
from firesteel.common import Configuration
from firesteel.common.serialization import Encoder
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.connectors.base import Committer, Sink, SinkWriter, SourceReader
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from firesteel.errors import UserFunctionError
from firesteel.testing import JobHarness
from tests.late_source import LateSource

_MODES = [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH]
# Not its name: a clone is often called so, too, and the tests are in it.
_PACKAGE = str(Path(firesteel.__file__).parent)
_NO_RESTART = Configuration().set_string("restart-strategy.type", "none")


def _failure(
    build: Callable[[StreamExecutionEnvironment], Any],
    mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING,
) -> UserFunctionError:
    """The error of a failed job. The user's traceback comes first, without internal frames."""

    def program(env: StreamExecutionEnvironment) -> Any:
        env.set_runtime_mode(mode)
        return build(env)

    with pytest.raises(UserFunctionError) as caught:
        JobHarness(program, parallelism=2).run()
    error = caught.value
    assert error.job == "harness"
    assert _PACKAGE not in error.traceback_text
    return error


# Sources

_SOURCE_METHODS = {
    "create_enumerator": "LateSource.create_enumerator",
    "discover_splits": "LateEnumerator.discover_splits",
    "create_reader": "LateSource.create_reader",
    "add_splits": "LateReader.add_splits",
    "read": "LateReader.read",
    "snapshot_splits": "LateReader.snapshot_splits",
    "reader close": "LateReader.close",
}


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("method", _SOURCE_METHODS)
def test_a_method_of_a_source_that_raises_is_named(method: str, mode: RuntimeExecutionMode) -> None:
    error = _failure(
        lambda env: env.from_source(LateSource(fails_in=method), None, "numbers"), mode
    )
    assert error.operator == "Source: numbers"
    assert error.function == _SOURCE_METHODS[method]
    assert error.file is not None
    assert error.file.endswith("late_source.py")
    assert f"ValueError: bad {method}" in error.traceback_text


def test_an_enumerator_that_cannot_be_saved_fails_its_job_with_its_name() -> None:
    harness = JobHarness(
        lambda env: env.from_source(LateSource(fails_in="snapshot_state"), None, "numbers"),
        checkpoint_every=1,
        configuration=_NO_RESTART,
    )
    with pytest.raises(UserFunctionError, match=r"LateEnumerator\.snapshot_state") as caught:
        harness.run()
    assert (caught.value.job, caught.value.operator) == ("harness", "Source: numbers")


def test_a_reader_that_yields_its_records_is_told_to_return_a_list() -> None:
    class Yielding(LateSource):
        def create_reader(self, context: Any) -> SourceReader:
            reader = super().create_reader(context)
            read = reader.read
            reader.read = lambda limit: (value for value in read(limit))  # type: ignore[method-assign]
            return reader

    error = _failure(lambda env: env.from_source(Yielding(), None, "numbers"))
    assert error.operator == "Source: numbers"
    assert "read() must return a list of records, but it returned <generator" in str(error)


# Sinks


class _Writer(SinkWriter):
    def __init__(self) -> None:
        self._values: list[Any] = []

    def write(self, value: Any, context: Any) -> None:
        self._values.append(value)

    def prepare_commit(self, end_of_input: bool) -> list[Any]:
        prepared, self._values = self._values, []
        return prepared


class _Committer(Committer):
    def __init__(self, fails_in: Sequence[str]) -> None:
        self._fails_in = fails_in

    def commit(self, committables: Sequence[Any]) -> None:
        if "commit" in self._fails_in:
            raise ValueError("bad commit")

    def close(self) -> None:
        if "close" in self._fails_in:
            raise ValueError("bad close")


class _Sink(Sink):
    def __init__(self, *fails_in: str) -> None:
        self._fails_in = fails_in

    def create_writer(self, context: Any, state: Any = None) -> SinkWriter:
        return _Writer()

    def create_committer(self) -> Committer:
        return _Committer(self._fails_in)


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("fails_in", [("commit",), ("close",), ("commit", "close")])
def test_a_committer_that_raises_is_named(
    fails_in: tuple[str, ...], mode: RuntimeExecutionMode
) -> None:
    error = _failure(
        lambda env: env.from_collection([1, 2]).sink_to(_Sink(*fails_in)).name("store"), mode
    )
    assert error.operator.startswith("store")
    # What the commit raised is not replaced by what the close raises after it.
    assert error.function == f"_Committer.{fails_in[0]}"
    assert f"ValueError: bad {fails_in[0]}" in error.traceback_text


class _BadEncoder(Encoder):
    def encode(self, element: int) -> bytes:
        if element == 3:
            raise ValueError("bad encoder")
        return b"%d\n" % element


class _TextEncoder(Encoder):
    def encode(self, element: int) -> bytes:
        return "3" if element == 3 else b"1"  # type: ignore[return-value]


class _BadBuckets(BucketAssigner):
    def get_bucket_id(self, element: int, context: Any) -> str:
        if element == 3:
            raise ValueError("bad bucket")
        return "bucket"


class _NumberedBuckets(BucketAssigner):
    def get_bucket_id(self, element: int, context: Any) -> str:
        return element if element == 3 else "bucket"  # type: ignore[return-value]


class _OneBadBucket(BucketAssigner):
    depends_on_element = False

    def get_bucket_id(self, element: int, context: Any) -> str:
        raise ValueError("bad bucket")


class _BadRolling(RollingPolicy):
    def should_roll_on_event(self, part_file: Any, element: int) -> bool:
        if element == 3:
            raise ValueError("bad rolling")
        return True


class _Rolling(RollingPolicy):
    """Makes the sink write record by record, each slower than a bucket check interval."""

    def should_roll_on_event(self, part_file: Any, element: int) -> bool:
        time.sleep(0.002)
        return False


_FILE_SINKS: dict[str, tuple[dict[str, Any], str, str]] = {
    "encoder": ({"encoder": _BadEncoder()}, "_BadEncoder.encode", "bad encoder"),
    "encoder, record by record": (
        {"encoder": _BadEncoder(), "policy": _Rolling()},
        "_BadEncoder.encode",
        "bad encoder",
    ),
    "text": ({"encoder": _TextEncoder()}, "_TextEncoder.encode", "return bytes.* returned '3'"),
    "text, record by record": (
        {"encoder": _TextEncoder(), "policy": _Rolling()},
        "_TextEncoder.encode",
        "return bytes.* returned '3'",
    ),
    "bucket": ({"buckets": _BadBuckets()}, "_BadBuckets.get_bucket_id", "bad bucket"),
    "number as bucket": (
        {"buckets": _NumberedBuckets()},
        "_NumberedBuckets.get_bucket_id",
        "bucket id must be str.* returned 3",
    ),
    "rolling": ({"policy": _BadRolling()}, "_BadRolling.should_roll_on_event", "bad rolling"),
}


def _file_sink(
    path: Path,
    encoder: Encoder | None = None,
    buckets: BucketAssigner | None = None,
    policy: RollingPolicy | None = None,
) -> FileSink:
    builder = FileSink.for_row_format(str(path), encoder or Encoder.simple_string_encoder())
    builder.with_bucket_assigner(buckets or BucketAssigner.base_path_bucket_assigner())
    return builder.with_rolling_policy(policy or RollingPolicy.default_rolling_policy()).build()


@pytest.mark.parametrize("name", _FILE_SINKS)
def test_a_function_of_the_file_sink_that_fails_is_named_with_the_record(
    name: str, tmp_path: Path
) -> None:
    parts, function, reason = _FILE_SINKS[name]
    error = _failure(
        lambda env: (
            env.from_collection([1, 2, 3, 4])
            .sink_to(_file_sink(tmp_path, **parts))
            .name("files")
            .set_parallelism(1)
        )
    )
    assert error.operator == "files: Writer"
    assert error.function == function
    assert error.record == "3"
    assert error.file == __file__
    assert re.search(reason, error.traceback_text)


def test_a_bucket_for_a_whole_batch_that_fails_is_named(tmp_path: Path) -> None:
    error = _failure(
        lambda env: env.from_collection([1]).sink_to(_file_sink(tmp_path, buckets=_OneBadBucket()))
    )
    assert error.function == "_OneBadBucket.get_bucket_id"


@pytest.mark.parametrize("method", ["should_roll_on_checkpoint", "should_roll_on_processing_time"])
def test_a_rolling_policy_that_fails_between_records_is_named(method: str, tmp_path: Path) -> None:
    def fails(policy: Any, *arguments: Any) -> bool:
        raise ValueError("bad rolling")

    policy = type("Failing", (_Rolling,), {method: fails})()
    sink = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    sink.with_rolling_policy(policy).with_bucket_check_interval(1)
    harness = JobHarness(
        lambda env: env.from_collection(range(9)).sink_to(sink.build()).name("files"),
        records_per_epoch=1,
        checkpoint_every=1,
        configuration=_NO_RESTART,
    )
    with pytest.raises(UserFunctionError, match="ValueError: bad rolling") as caught:
        harness.run()
    assert caught.value.operator == "files: Writer"
    assert caught.value.file == __file__


# Exchanges


class _Sealed:
    """It can be sent, but not be received."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _unseal, ()


def _unseal() -> Any:
    raise ValueError("sealed")


def test_a_record_that_cannot_be_unpickled_names_the_operator_it_was_for() -> None:
    error = _failure(
        lambda env: (
            env.from_collection([1]).map(lambda value: _Sealed()).rebalance().map(str).name("opens")
        )
    )
    assert error.operator == "opens"
    assert error.function == "_unseal"
    assert "ValueError: sealed" in error.traceback_text
