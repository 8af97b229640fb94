"""Iterations on Spark: the end, a failure in the middle, and a loop that is canceled."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from firesteel.common import JobStatus
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import MapFunction
from firesteel.testing import ListSink
from tests.integration.conftest import MakeEnvironment
from tests.waiting import wait_until


def test_keyed_loop_ends_when_it_is_empty(env: StreamExecutionEnvironment) -> None:
    numbers = [(key, number) for key in "abc" for number in range(1, 5)]
    loop = env.from_collection(numbers).iterate(max_wait=200).set_parallelism(2)
    smaller = loop.key_by(lambda r: r[0]).map(lambda r: (r[0], r[1] - 1))
    loop.close_with(smaller.filter(lambda r: r[1] > 0))
    with smaller.filter(lambda r: r[1] == 0).execute_and_collect() as results:
        assert Counter(results) == {("a", 0): 4, ("b", 0): 4, ("c", 0): 4}


class FailingOnce(MapFunction):
    """One step; at a certain number the first process that gets there raises, or is killed."""

    def __init__(self, how: str, marker: Path, number: int) -> None:
        self.how = how
        self.marker = marker
        self.number = number

    def map(self, value: tuple[int, int]) -> tuple[int, int]:
        if value[1] == self.number:
            try:
                self.marker.open("x").close()
            except FileExistsError:
                pass
            else:
                if self.how == "is killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError("crash in the loop")
        return value[0], value[1] - 1


@pytest.mark.parametrize("how", ["raises", "is killed"])
def test_a_job_that_fails_with_records_in_its_loop_gives_every_result_once(
    make_env: MakeEnvironment, tmp_path: Path, how: str
) -> None:
    sink = ListSink(tmp_path / "results")
    env = make_env(
        **{
            "execution_checkpointing_interval": "100 ms",
            "execution_checkpointing_dir": str(tmp_path / "checkpoints"),
            "restart-strategy_type": "fixed-delay",
            "restart-strategy_fixed-delay_attempts": "3",
            "restart-strategy_fixed-delay_delay": "10 ms",
            # Records of the loop travel as files.
            "state_storage_fs_memory-threshold": "0 b",
        }
    )
    loop = env.from_collection([(n, 8) for n in range(20)]).iterate(max_wait=300)
    step = loop.set_parallelism(2).rebalance().map(FailingOnce(how, tmp_path / "failed", 3))
    loop.close_with(step.filter(lambda r: r[1] > 0))
    step.sink_to(sink)
    env.execute("fails in the loop")
    assert (tmp_path / "failed").exists()
    assert Counter(sink.values()) == Counter((n, left) for n in range(20) for left in range(8))
    assert list((tmp_path / "checkpoints").rglob("shared/*")) == []


def test_an_endless_loop_can_be_canceled(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    loop = env.from_collection([0]).iterate(max_wait=1).set_parallelism(2)
    more = loop.rebalance().map(lambda n: n + 1)
    loop.close_with(more)
    more.filter(lambda n: n == 3).map(lambda n: (tmp_path / "went round").touch())
    client = env.execute_async("endless")
    wait_until((tmp_path / "went round").exists)
    client.cancel().result()
    wait_until(lambda: client.get_job_status().result().is_terminal_state())
    assert client.get_job_status().result() is JobStatus.CANCELED
