"""Functions live as long as their job: opened once, state in ``self`` kept, closed at the end."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import JobClient, JobStatus
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.functions import MapFunction, RuntimeContext, SinkFunction
from firesteel.slothost.connection import parent_of_sockets
from tests.integration.conftest import MakeEnvironment
from tests.waiting import wait_until


class Numbering(MapFunction):
    """Counts in ``self``, and notes each open and close in a file."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = 0
        self._note(f"open {runtime_context.get_index_of_this_subtask()}")

    def map(self, value: int) -> int:
        self._count += 1
        return self._count

    def close(self) -> None:
        self._note("close")

    def _note(self, text: str) -> None:
        with self._log.open("a") as log:
            log.write(text + "\n")


def count_in_self(make_env: MakeEnvironment, log: Path, epochs: int) -> None:
    per_epoch = 10
    env = make_env(parallelism=1, firesteel_epoch_max__records=str(per_epoch))
    source = NumberSequenceSource(1, epochs * per_epoch)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    with numbers.map(Numbering(log)).execute_and_collect() as results:
        assert list(results) == list(range(1, epochs * per_epoch + 1))
    assert log.read_text().splitlines() == ["open 0", "close"]


def test_a_counter_in_self_counts_on_across_epochs(
    make_env: MakeEnvironment, tmp_path: Path
) -> None:
    count_in_self(make_env, tmp_path / "log", epochs=15)


@pytest.mark.slow
def test_a_counter_in_self_counts_on_across_200_epochs(
    make_env: MakeEnvironment, tmp_path: Path
) -> None:
    count_in_self(make_env, tmp_path / "log", epochs=200)


class BufferingSink(SinkFunction):
    """Writes only when it is closed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def open(self, runtime_context: RuntimeContext) -> None:
        self._buffer: list[Any] = []
        self._file = self._directory / f"part-{runtime_context.get_index_of_this_subtask()}"

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self._buffer.append(value)

    def close(self) -> None:
        self._file.write_text("\n".join(map(str, self._buffer)))


def written(directory: Path) -> list[int]:
    return sorted(
        int(line) for part in directory.iterdir() for line in part.read_text().splitlines()
    )


def test_what_close_flushes_is_not_lost_when_a_bounded_job_ends(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    source = NumberSequenceSource(1, 500)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.add_sink(BufferingSink(tmp_path))
    env.execute("buffering")
    assert written(tmp_path) == list(range(1, 501))


def records_in(client: JobClient) -> int:
    vertices = client.get_overview()["vertices"]
    return sum(one["records_in"] for vertex in vertices for one in vertex["subtasks"])


def hosts_of(client: JobClient) -> set[int]:
    """The processes that a job's slots live in."""
    vertices = client.get_overview()["vertices"]
    hosts = {one["host"] for vertex in vertices for one in vertex["subtasks"]}
    return {int(host.rpartition(":")[2]) for host in hosts}


def is_running(pid: int) -> bool:
    try:
        # A zombie process has no command line.
        return Path(f"/proc/{pid}/cmdline").read_text() != ""
    except OSError:
        return False


def test_a_canceled_job_flushes_in_close_and_leaves_no_directory_and_no_process(
    make_env: MakeEnvironment, execution: str, tmp_path: Path
) -> None:
    working, target = tmp_path / "working", tmp_path / "target"
    target.mkdir()
    env = make_env(
        parallelism=1,
        firesteel_working__dir=str(working),
        firesteel_slot__host_idle__timeout="100 ms",
    )
    source = DataGeneratorSource(lambda i: i, 1_000_000, RateLimiterStrategy.per_second(50))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.add_sink(BufferingSink(target))
    client = env.execute_async("endless")
    wait_until(lambda: records_in(client) > 20)
    kind = "live" if execution == "real-time" else "clock"
    job_id = str(client.get_job_id())
    (sockets,) = parent_of_sockets().glob(f"firesteel-{kind}-{job_id[:6]}-*")
    hosts = hosts_of(client)
    assert list(working.iterdir()) != []
    assert all(map(is_running, hosts))
    started = time.monotonic()
    client.cancel().result()
    assert time.monotonic() - started < 60
    assert client.get_job_status().result() is JobStatus.CANCELED
    values = written(target)
    assert len(values) > 20
    assert values == list(range(len(values)))
    assert not sockets.exists()
    assert list(working.iterdir()) == []
    wait_until(lambda: not any(map(is_running, hosts)))


class Suicidal(MapFunction):
    """Kills the process it runs in when it meets a value for the first time."""

    def __init__(self, value: int, mark: Path) -> None:
        self._value = value
        self._mark = mark

    def map(self, value: int) -> int:
        if value == self._value and not self._mark.exists():
            self._mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return value


def test_a_job_goes_on_when_a_slot_host_is_killed(
    make_env: MakeEnvironment, tmp_path: Path
) -> None:
    env = make_env(parallelism=2, firesteel_epoch_max__records="50")
    source = NumberSequenceSource(1, 1000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    sums = (
        numbers.key_by(lambda x: x % 3)
        .map(Suicidal(700, tmp_path / "killed"))
        .map(lambda x: (x % 3, x))
        .key_by(lambda pair: pair[0])
        .sum(1)
    )
    with sums.execute_and_collect() as results:
        last: dict[int, int] = {}
        count = 0
        for key, total in results:
            last[key] = max(total, last.get(key, 0))
            count += 1
    assert (tmp_path / "killed").exists()
    assert count == 1000
    assert last == {key: sum(x for x in range(1, 1001) if x % 3 == key) for key in range(3)}
