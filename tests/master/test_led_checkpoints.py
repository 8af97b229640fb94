"""Collected records and the checkpoints of a job with several masters."""

from __future__ import annotations

from pathlib import Path
from threading import Condition
from typing import Any, cast

import pytest

from firesteel.checkpoint.storage.storage import open_storage
from firesteel.dispatcher.durable_results import DurableResultReader, DurableResultWriter
from firesteel.leader.job_ledger import JobLedger
from firesteel.master.driver_output import CollectedOutput
from firesteel.master.led_checkpoints import LedCheckpoints
from firesteel.usercode import pickling

NODE, TERM = 4, 1


class Entries:
    """The pointers that were written, by checkpoint."""

    def __init__(self) -> None:
        self.results: dict[int, Any] = {}

    def complete(self, checkpoint_id: int, location: str, results: Any) -> None:
        assert location
        self.results[checkpoint_id] = results[NODE]


class Job:
    """The output of a job, and its client."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.entries = Entries()
        self.output = CollectedOutput(wait=True)
        self.writer = DurableResultWriter(open_storage(str(directory)), TERM, (), 1 << 20)
        self.led = LedCheckpoints(
            cast("JobLedger", self.entries), self.output, {NODE: self.writer}, Condition()
        )

    def hand_out(self) -> None:
        due = self.output.take()
        self.led.publish()
        for _, records in due:
            self.writer.add(records)

    def read(self) -> list[int]:
        reader = DurableResultReader(open_storage(str(self.directory)), TERM)
        return [one for _, batch in reader.read(0, 1 << 20) for one in pickling.loads(batch)]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_records_are_visible_once_the_job_counts_their_checkpoint_as_complete(job):
    job.output.add(1, NODE, [1, 2])
    job.led.complete(7, "/chk-7", 1)
    job.hand_out()
    assert job.read() == []
    job.output.confirm(1)
    job.hand_out()
    assert job.read() == [1, 2]


def test_records_of_a_checkpoint_that_a_job_gives_up_at_its_end_stay_hidden(job):
    """Its pointer is removed, so the next master makes the records again."""
    job.output.add(1, NODE, [1])
    job.led.complete(7, "/chk-7", 1)
    job.output.confirm(1)
    job.output.add(2, NODE, [2])
    job.led.complete(8, "/chk-8", 2)
    job.hand_out()
    assert job.read() == [1]


def test_a_checkpoint_may_be_stored_before_the_records_of_the_last_one_are_handed_out(job):
    for epoch in (1, 2, 3):
        job.output.add(epoch, NODE, [epoch])
        job.led.complete(epoch, f"/chk-{epoch}", epoch)
        job.output.confirm(epoch)
    job.hand_out()
    assert job.read() == [1, 2, 3]
    assert job.entries.results == {1: ((1, 1, 1),), 2: ((1, 1, 2),), 3: ((1, 1, 3),)}


def test_records_of_a_checkpoint_that_failed_come_with_the_next_one(job):
    job.output.add(1, NODE, [1])
    job.led.complete(7, "/chk-7", 1)
    job.output.add(2, NODE, [2])
    job.led.complete(8, "/chk-8", 2)
    job.output.confirm(2)
    job.hand_out()
    assert job.read() == [1, 2]
    assert job.entries.results[8] == ((1, 1, 1),)
