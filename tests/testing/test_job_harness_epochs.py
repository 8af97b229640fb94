"""Jobs of very many epochs: the cost of an epoch, and what a job keeps, do not grow.

The number of epochs comes from the variable FIRESTEEL_EPOCHS. A million take about twenty minutes.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration, Types
from firesteel.datastream import KeyedProcessFunction, SinkFunction
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.testing import JobHarness

_EPOCHS = int(os.environ.get("FIRESTEEL_EPOCHS", "60000"))
_YOUNG = 500
_SAMPLE = 200
_TURNS = 7


class Count(KeyedProcessFunction):
    """State that changes with each record, and timers of both kinds that come and go."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count % 20 == 0:
            timers = ctx.timer_service()
            timers.register_processing_time_timer(timers.current_processing_time() + 10)
            yield count

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[int]:
        yield timestamp


class Nowhere(SinkFunction):
    def invoke(self, value: Any, context: Any) -> None:
        pass


def job(env: Any) -> None:
    env.from_sequence(1, 10**12).key_by(lambda n: n % 10).process(Count()).add_sink(Nowhere())


def run(harness: JobHarness, epochs: int) -> float:
    """Run epochs. Return the processor time of one in milliseconds."""
    began = time.process_time()
    for _ in range(epochs):
        assert harness.run_epoch()
    return 1000 * (time.process_time() - began) / epochs


def kept(directory: Path) -> tuple[int, int]:
    """The number of objects in this process, and of files in a directory."""
    gc.collect()
    return len(gc.get_objects()), sum(len(names) for _, _, names in os.walk(directory))


@pytest.mark.slow
@pytest.mark.timeout(24 * 3600)
@pytest.mark.parametrize("execution", ["real-time", "micro-batch"])
def test_an_epoch_costs_as_much_after_very_many_as_at_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, execution: str
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    settings = Configuration.from_dict(
        {
            "firesteel.execution": execution,
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        }
    )

    def start() -> JobHarness:
        harness = JobHarness(
            job, parallelism=1, records_per_epoch=3, checkpoint_every=50, configuration=settings
        )
        run(harness, _YOUNG)
        return harness

    old = start()
    objects, files = kept(tmp_path)
    run(old, _EPOCHS)
    more_objects, more_files = kept(tmp_path)
    assert more_objects <= objects + 500
    assert more_files <= files + 10
    young = start()
    # Turn by turn, so that both see the same machine.
    ratios = [run(old, _SAMPLE) / run(young, _SAMPLE) for _ in range(_TURNS)]
    assert statistics.median(ratios) < 1.15, ratios
