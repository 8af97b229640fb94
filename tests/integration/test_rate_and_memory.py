"""Back pressure: slow functions and long streams stay within bounds of time and memory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
from pyspark.sql import SparkSession

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.functions import SinkFunction
from tests.integration.conftest import MakeEnvironment
from tests.integration.test_life_of_functions import hosts_of
from tests.waiting import wait_until

TARGET_SECONDS = 1.0


RECORD_BYTES = 10_000


def slow(value: bytes) -> int:
    time.sleep(0.001)
    return len(value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "behind_an_exchange",
    [pytest.param(False, id="chained"), pytest.param(True, id="exchange")],
)
@pytest.mark.execution("micro-batch")
def test_a_slow_map_blows_up_neither_an_epoch_nor_memory(
    make_env: MakeEnvironment, behind_an_exchange: bool
) -> None:
    env = make_env(parallelism=2, firesteel_epoch_target__duration="1 s")
    source = NumberSequenceSource(1, 16_000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    stream = numbers.map(lambda _: os.urandom(RECORD_BYTES))
    if behind_an_exchange:
        stream = stream.rebalance()
    stream.map(slow).add_sink(Nowhere())
    with MemoryWatch() as memory:
        client = env.execute_async("slow")
        client.get_job_execution_result().result()
    # 110 MB before the first record; all of a subtask's records, once as bytes and once in buffers,
    # would be another 160.
    assert max(memory.largest_of[pid] for pid in hosts_of(client)) < 200
    overview = client.get_overview()
    # 8 s of work a subtask (a sleep takes a little longer than asked for).
    assert overview["longest_epoch_seconds"] < 5 * TARGET_SECONDS
    assert overview["epochs"] >= 4


class Nowhere(SinkFunction):
    def invoke(self, value: object, context: SinkFunction.Context) -> None:
        pass


class MemoryWatch:
    """The largest resident memory of this process and its Python descendants, in megabytes."""

    def __init__(self) -> None:
        self.largest = 0.0
        self.largest_of: dict[int, float] = {}
        self.driver: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            now = {pid: _resident(pid) for pid in _python_processes()}
            self.largest = max(self.largest, sum(now.values()))
            for pid, resident in now.items():
                self.largest_of[pid] = max(resident, self.largest_of.get(pid, 0.0))
            self.driver.append(_resident(os.getpid()))


def _python_processes() -> list[int]:
    """All of the session's: PySpark's daemon has a group of its own, but our session."""
    session = os.getsid(0)
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            if os.getsid(int(entry.name)) == session and b"python" in command.split(b"\0")[0]:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _resident(pid: int) -> float:
    """The process's memory in megabytes. Pages that it shares with others count in part."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000


@pytest.mark.slow
def test_fifty_million_records_stay_under_1_5_gb_and_the_driver_does_not_grow(
    make_env: Callable[..., StreamExecutionEnvironment],
) -> None:
    env = make_env(parallelism=2)
    source = NumberSequenceSource(1, 50_000_000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.map(lambda x: x + 1).key_by(lambda x: x % 1000).reduce(lambda a, b: a + b).add_sink(
        Nowhere()
    )
    with MemoryWatch() as memory:
        env.execute("fifty million")
    assert memory.largest < 1500
    early, late = memory.driver[len(memory.driver) // 4], memory.driver[-1]
    assert late < early + 50


@pytest.mark.execution("real-time")
def test_an_idle_job_asks_spark_for_nothing(make_env: MakeEnvironment) -> None:
    env = make_env(parallelism=2)
    source = DataGeneratorSource(
        int, count=10**9, rate_limiter_strategy=RateLimiterStrategy.per_second(0.001)
    )
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "silence")
    stream.rebalance().add_sink(Nowhere())
    client = env.execute_async("idle")
    try:
        wait_until(lambda: client.get_overview()["epochs"] > 0)
        # One thread per source slot sleeps, instead of looking for rows every 10 ms.
        wait_until(lambda: _threads_in("CallMethodViaReflection") == 2)
        assert _threads_in("LowLatencyMemoryStreamPartitionReader") == 0
    finally:
        client.cancel().result()
    wait_until(lambda: _threads_in("CallMethodViaReflection") == 0)


def _threads_in(name: str) -> int:
    """Return the number of threads of Spark whose stack has a class of this name."""
    session = SparkSession.getActiveSession()
    assert session is not None
    jvm: Any = session._jvm
    stacks = jvm.java.lang.Thread.getAllStackTraces().values()
    return sum(any(name in frame.getClassName() for frame in stack) for stack in stacks)
