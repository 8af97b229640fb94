"""State and timers of users' functions on Spark, when a slot's process is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ListStateDescriptor, ValueStateDescriptor
from tests.integration.conftest import MakeEnvironment

pytestmark = pytest.mark.both_ways

RECORDS, KEYS = 400, 7


class Counting(KeyedProcessFunction):
    """Counts per key, and has a timer for the end; kills its own process once, in the middle."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.last = runtime_context.get_list_state(ListStateDescriptor("last", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Any:
        if value == RECORDS // 2 and not self._mark.exists():
            self._mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.last.update([*self.last.get()[-1:], value])
        ctx.timer_service().register_event_time_timer(1_000_000)
        yield ctx.get_current_key(), count

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), self.count.value(), tuple(self.last.get())


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_killed_slot_host_loses_no_state_and_no_timer(
    make_env: MakeEnvironment, tmp_path: Path, backend: str
) -> None:
    env = make_env(
        parallelism=2,
        firesteel_epoch_max__records="40",
        state_backend_type=backend,
        state_backend_rocksdb_localdir=str(tmp_path / "rocksdb"),
    )
    source = NumberSequenceSource(1, RECORDS)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    counted = numbers.key_by(lambda n: n % KEYS).process(Counting(tmp_path / "mark"))
    with counted.execute_and_collect() as results:
        records = list(results)
    assert (tmp_path / "mark").exists()
    for key in range(KEYS):
        mine = [number for number in range(1, RECORDS + 1) if number % KEYS == key]
        counts = [record[1] for record in records if record[0] == key and len(record) == 2]
        assert counts == list(range(1, len(mine) + 1))
        (at_the_end,) = (r for r in records if r[0] == key and len(r) == 3)
        assert at_the_end[1] == len(mine)
        assert len(at_the_end[2]) == 2
    if backend == "rocksdb":
        # Only the killed process could not clean up.
        assert len(list((tmp_path / "rocksdb").iterdir())) <= 1
