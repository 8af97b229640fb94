"""Barriers on Spark: they align, overtake, or are overtaken, as the settings say.

D reads from F, which is fast, and from S, which answers the driver every two seconds only. So the
barrier of F arrives first.

F:  0 1 2 | 3 4 5 6 ...
S:  (busy)      |
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.datastream import KeyedProcessFunction
from firesteel.datastream.functions import (
    CheckpointedFunction,
    MapFunction,
    RuntimeContext,
    SinkFunction,
)
from firesteel.datastream.state import ValueStateDescriptor
from tests.integration.conftest import MakeEnvironment
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.execution("real-time")]

RECORDS = 2000
SLOW = -1
SNAPSHOT = -2


class Signals:
    """Files by which a test and its functions talk. A file that exists is a signal."""

    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)

    def path(self, name: str) -> Path:
        return Path(self.directory, name)

    def give(self, name: str) -> None:
        self.path(name).touch()

    def note(self, name: str, *numbers: int) -> None:
        with self.path(name).open("a") as file:
            file.write(" ".join(map(str, numbers)) + "\n")

    def noted(self, name: str) -> list[list[int]]:
        path = self.path(name)
        lines = path.read_text().splitlines() if path.exists() else []
        return [[int(number) for number in line.split()] for line in lines]


class Function:
    """A function that notes what it does, by attempt of the job."""

    def __init__(self, signals: Signals) -> None:
        self.signals = signals

    def open(self, runtime_context: RuntimeContext) -> None:
        self.attempt = int(self.signals.path("D has failed").exists())


class Fast(Function, MapFunction):
    """F: some hundred records a second."""

    def map(self, value: int) -> int:
        time.sleep(0.005)
        self.signals.note(f"F {self.attempt}", value)
        return value


class Slow(Function, MapFunction):
    """S: a record takes so long that its barriers are late."""

    def map(self, value: int) -> int:
        time.sleep(2.0)
        return SLOW


class Count(Function, KeyedProcessFunction):
    """D: counts each record in its state. It fails once, when the test says so."""

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        if not self.attempt and self.signals.path("D shall fail").exists():
            self.signals.give("D has failed")
            raise ValueError("as the test wants it")
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.signals.note(f"D {self.attempt}", value)
        yield value, count


class Snapshots(Function, MapFunction, CheckpointedFunction):
    """Notes when D takes its snapshot, and how often the state of D has counted each record."""

    def initialize_state(self, context: Any) -> None:
        pass

    def snapshot_state(self, context: Any) -> None:
        self.signals.note(f"D {self.attempt}", SNAPSHOT)

    def map(self, value: Any) -> Any:
        self.signals.note("counts", *value)
        return value


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["at least once", "aligned", "unaligned"])
def test_a_crash_doubles_exactly_the_records_that_overtook_a_barrier(
    make_env: MakeEnvironment, tmp_path: Path, kind: str
) -> None:
    signals = Signals(tmp_path)
    env = make_env(
        1,
        execution_checkpointing_interval="1 h",
        execution_checkpointing_dir=(tmp_path / "checkpoints").as_uri(),
        execution_checkpointing_mode="AT_LEAST_ONCE" if kind == "at least once" else "EXACTLY_ONCE",
        execution_checkpointing_unaligned_enabled=str(kind == "unaligned").lower(),
        restart__strategy_type="fixed-delay",
        restart__strategy_fixed__delay_attempts="1",
        restart__strategy_fixed__delay_delay="100 ms",
    )
    fast = env.from_sequence(0, RECORDS - 1).map(Fast(signals))
    numbers = env.from_sequence(0, 10**9).slot_sharing_group("slow")
    slow = numbers.map(Slow(signals)).slot_sharing_group("slow")
    counted = fast.union(slow).key_by(lambda value: value).process(Count(signals))
    counted.map(Snapshots(signals)).add_sink(Nowhere())
    job = env.execute_async(kind)
    wait_until(lambda: len(signals.noted("D 0")) > 50)
    job.trigger_checkpoint().result()
    signals.give("D shall fail")
    wait_until(lambda: [RECORDS - 1] in signals.noted("D 1"))
    job.cancel().result()

    ((first_after_barrier,), *_) = signals.noted("F 1")
    seen = [value for (value,) in signals.noted("D 0")]
    before_the_snapshot = seen[: seen.index(SNAPSHOT)]
    overtook = {value for value in before_the_snapshot if value >= first_after_barrier}
    counts: Counter[int] = Counter()
    for value, count in signals.noted("counts"):
        counts[value] = max(counts[value], count)
    del counts[SLOW]
    assert {value for value, count in counts.items() if count == 2} == overtook
    assert max(counts.values()) <= 2
    assert counts.keys() == set(range(RECORDS))
    assert bool(overtook) is (kind == "at least once")


class Nowhere(SinkFunction):
    def invoke(self, value: object, context: SinkFunction.Context) -> None:
        pass
