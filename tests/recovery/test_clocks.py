"""Drivers whose clocks are wrong: a job continues after its last checkpoint all the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.master import job_recovery
from firesteel.testing import JobHarness, ListSink
from tests.thoroughness import examples

RECORDS = 60
# The savepoint of branches is taken after an epoch.
AFTER_SAVEPOINT = [*range(3, RECORDS + 1)]


def run_drivers(drivers: list[tuple[float, int, int]]) -> list[Any]:
    """Drivers that are killed one after the other, and the committed records of the job.

    Each has the error of its clock, and numbers of epochs before and after its checkpoint.
    """
    sink = ListSink()
    harness: JobHarness | None = None
    for error, before, after in [*drivers, (0.0, 0, 0)]:
        with patch.object(
            job_recovery, "time", SimpleNamespace(time=lambda error=error: 1e9 + error)
        ):
            if harness is None:
                harness = JobHarness(
                    lambda env: env.from_sequence(1, RECORDS).sink_to(sink),
                    records_per_epoch=2,
                    checkpoint_every=0,
                )
            else:
                harness.kill()
                harness = harness.resume()
        for _ in range(before):
            harness.run_epoch()
        harness.checkpoint()
        for _ in range(after):
            harness.run_epoch()
    assert harness is not None
    harness.run()
    return sorted(sink.values())


@pytest.mark.parametrize("errors", [(600.0, 0.0), (0.0, -600.0, 600.0, -1200.0)], ids=str)
def test_a_driver_whose_clock_was_ahead_does_not_take_the_job_back(
    errors: tuple[float, ...],
) -> None:
    assert run_drivers([(error, 2, 3) for error in errors]) == [*range(1, RECORDS + 1)]


def run_branches(branches: list[tuple[float, int]]) -> list[Any]:
    """Drivers that all return to the same savepoint, each with the error of its clock.

    Each takes a checkpoint after some epochs. A last one continues from the directory. Returns the
    records of the last branch and those of the last driver.
    """
    harness = JobHarness(
        lambda env: env.from_sequence(1, RECORDS), records_per_epoch=2, checkpoint_every=0
    )
    savepoint = harness.savepoint()
    harness.kill()
    for error, epochs in branches:
        clock = SimpleNamespace(time=lambda error=error: 1e9 + error)
        with patch.object(job_recovery, "time", clock):
            harness = harness.resume(savepoint)
        for _ in range(epochs):
            harness.run_epoch()
        harness.checkpoint()
        records = list(harness.collected)
        harness.kill()
    harness = harness.resume()
    harness.run()
    return records + harness.collected


def test_a_return_to_a_savepoint_counts_although_the_clock_was_ahead_before() -> None:
    assert run_branches([(600.0, 5), (0.0, 2)]) == AFTER_SAVEPOINT


@given(
    st.lists(
        st.tuples(st.floats(-3600, 3600), st.integers(1, 4)),
        min_size=2,
        max_size=4,
    )
)
@settings(max_examples=examples(20), deadline=None)
def test_any_clocks_and_returns(branches: list[tuple[float, int]]) -> None:
    assert run_branches(branches) == AFTER_SAVEPOINT


@given(
    st.lists(
        st.tuples(st.floats(-3600, 3600), st.integers(0, 2), st.integers(0, 3)),
        min_size=2,
        max_size=5,
    )
)
@settings(max_examples=examples(30), deadline=None)
def test_any_clocks(drivers: list[tuple[float, int, int]]) -> None:
    assert run_drivers(drivers) == [*range(1, RECORDS + 1)]
