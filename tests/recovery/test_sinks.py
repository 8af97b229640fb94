"""Sinks that cannot take back their writes: at least once.

What counts exactly once is in test_commit_phases.py; these are the other rows of
docs/delivery-guarantees.md.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.datastream import SinkFunction
from firesteel.testing import Fault, JobHarness
from tests.recovery.jobs import RESTARTS

EXPECTED = Counter(map(str, range(60)))


class Lines(SinkFunction):
    """Appends to a file at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def invoke(self, value: str, context: Any) -> None:
        with self.path.open("a") as file:
            file.write(value + "\n")


def start(tmp_path: Path) -> JobHarness:
    def program(env: Any) -> Any:
        numbers = env.from_collection(range(60)).map(str)
        numbers.print()
        numbers.rebalance().add_sink(Lines(tmp_path / "lines"))
        return numbers

    return JobHarness(
        program,
        parallelism=2,
        records_per_epoch=6,
        checkpoint_every=0,
        configuration=RESTARTS,
        batch_bytes=64,
    )


def printed(harness: JobHarness) -> Counter[str]:
    return Counter(line.rpartition(" ")[2] for line in harness.printed)


def written(tmp_path: Path) -> Counter[str]:
    return Counter((tmp_path / "lines").read_text().split())


@pytest.mark.parametrize("fault", [Fault.RETRY, Fault.LOSE_HOST_LATE, Fault.ZOMBIE])
def test_a_lost_task_repeats_a_sink_function_but_not_what_goes_through_the_driver(
    tmp_path: Path, fault: Fault
) -> None:
    harness = start(tmp_path)
    harness.run({3: dict.fromkeys(harness.places(), fault)})
    assert printed(harness) == Counter(harness.collected) == EXPECTED
    assert written(tmp_path) > EXPECTED


def test_a_job_that_goes_back_repeats_what_was_printed_and_invoked_but_not_what_was_collected(
    tmp_path: Path,
) -> None:
    harness = start(tmp_path)
    harness.run_epoch()
    harness.checkpoint()
    harness.run_epoch()
    harness.crash()
    harness.run()
    assert Counter(harness.collected) == EXPECTED
    for some in (printed(harness), written(tmp_path)):
        assert some > EXPECTED
        assert max(some.values()) == 2
        # Only what came behind the checkpoint is there twice.
        assert some["0"] == 1
