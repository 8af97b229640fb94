"""An exception anywhere in user code restarts the job, and the result is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.errors import UserFunctionError
from firesteel.testing import JobHarness
from tests.recovery.jobs import RESTARTS, InjectedError, Job, Trap, assert_exactly_once

PLACES: dict[str, Any] = {
    "map": lambda place, value: place == "map" and value == 30,
    "map, before any checkpoint": lambda place, value: place == "map" and value == 1,
    "map, with the last record": lambda place, value: place == "map" and value == 47,
    "open": lambda place, _: place == "open",
    "snapshot": lambda place, checkpoint: place == "snapshot" and checkpoint == 3,
    "first snapshot": lambda place, checkpoint: place == "snapshot" and checkpoint == 1,
    "processing-time timer": lambda place, time: place == "timer" and time < 1_000_000,
    "event-time timer": lambda place, time: place == "timer" and time > 1_000_030,
    "close": lambda place, _: place == "close",
}


def start(job: Job, **more: Any) -> JobHarness:
    arguments = {"records_per_epoch": 3, "checkpoint_every": 3, "configuration": RESTARTS}
    return JobHarness(job, parallelism=2, **{**arguments, **more})


@pytest.mark.parametrize("every", [None, 0, 1, 3, 1000])
def test_the_clean_run_gives_the_golden_answer(tmp_path: Path, every: int | None) -> None:
    job = Job(tmp_path)
    harness = start(job, checkpoint_every=every)
    harness.run()
    assert harness.status is JobStatus.FINISHED
    assert_exactly_once(job, harness)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("storage", ["filesystem", "jobmanager"])
def test_an_exception_in(tmp_path: Path, place: str, storage: str) -> None:
    job = Job(tmp_path, Trap(tmp_path), PLACES[place])
    configuration = RESTARTS.__deepcopy__({})
    if storage == "jobmanager":
        configuration.set_string("execution.checkpointing.storage", storage)
    harness = start(job, configuration=configuration)
    harness.run()
    assert job.trap is not None
    assert job.trap.met == 1
    assert_exactly_once(job, harness)


def test_an_exception_while_the_state_comes_back(tmp_path: Path) -> None:
    """The job fails at 20, and then twice again before it has got its state back."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    inner = Trap(second, times=2)

    def where(place: str, what: Any) -> bool:
        if place == "initialize" and what is not None:
            inner.meet()
        return place == "map" and what == 20

    job = Job(tmp_path, Trap(first), where)
    harness = start(job)
    harness.run()
    assert inner.met == 2
    assert_exactly_once(job, harness)


def test_a_job_whose_restarts_are_used_up_fails_with_its_last_error(tmp_path: Path) -> None:
    job = Job(tmp_path, Trap(tmp_path, times=100), PLACES["map"])
    harness = start(job)
    with pytest.raises(UserFunctionError, match="InjectedError: trap 20"):
        harness.run()
    assert harness.status is JobStatus.FAILED
    # What was confirmed is there, once.
    assert InjectedError.__name__
    assert len(set(harness.collected)) == len(harness.collected) > 0
