"""The number of task slots, also while the executors of a cluster register."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.spark.task_slots import task_slots, wait_for_slots


class Cluster:
    """Executors that register at these times, with two slots each."""

    def __init__(self, *times: float) -> None:
        self._times = times
        self.now = 0.0

    def count(self) -> int:
        return 2 * sum(at <= self.now for at in self._times)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, wanted: int, seconds: float) -> int:
        return wait_for_slots(self.count, wanted, seconds, now=lambda: self.now, sleep=self.sleep)


@pytest.mark.parametrize(
    ("times", "wanted", "slots", "until"),
    [
        ((0.0, 0.0), 4, 4, 0.0),
        ((1.0, 3.0), 4, 4, 3.0),
        # A cluster that is too small is known to be so before the time is over.
        ((1.0, 3.0), 6, 4, 8.0),
        # Nothing has registered in time.
        ((40.0,), 2, 0, 30.0),
        ((3.0,), 0, 0, 0.0),
    ],
)
def test_executors_are_waited_for(
    times: tuple[float, ...], wanted: int, slots: int, until: float
) -> None:
    cluster = Cluster(*times)
    assert cluster.wait(wanted, 30.0) == slots
    assert cluster.now == pytest.approx(until, abs=0.5)


def test_an_old_application_does_not_wait() -> None:
    cluster = Cluster(1.0)
    assert cluster.wait(4, -100.0) == 0
    assert cluster.now == 0.0


@pytest.mark.parametrize(("master", "slots"), [("local", 1), ("local[3]", 3), ("local[5,4]", 5)])
def test_threads_are_the_slots_of_a_local_master(master: str, slots: int) -> None:
    context: Any = SimpleNamespace(master=master)
    assert task_slots(context, wanted=99) == slots
