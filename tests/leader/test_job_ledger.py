"""The entries of a job: pointers, counter and end."""

from __future__ import annotations

import pytest

from firesteel.errors import LeadershipLostError
from firesteel.leader.documents import Documents
from firesteel.leader.fence import Fence
from firesteel.leader.file_leases import FileStore, LeaseDirectory
from firesteel.leader.job_ledger import JobLedger

JOB = "ab" * 16


@pytest.fixture
def directory(tmp_path) -> LeaseDirectory:
    found = LeaseDirectory(tmp_path / "group")
    found.create()
    return found


def ledger_of(directory: LeaseDirectory, term: int, job: str = JOB) -> JobLedger:
    documents = Documents(FileStore(directory, term), "group", b"key")
    return JobLedger(documents, Fence(str(directory.at(term)), "fence", term), job)


def test_pointers_are_the_newest_first_and_belong_to_one_job(directory):
    ledger = ledger_of(directory, 0)
    for number in (9, 10, 11):
        ledger.begin(number)
        ledger.complete(number, f"/chk-{number}", {4: ((0, 1, number),)})
    ledger_of(directory, 0, "cd" * 16).complete(1, "/other")
    assert [(one.checkpoint_id, one.location) for one in ledger.pointers()] == [
        (11, "/chk-11"),
        (10, "/chk-10"),
        (9, "/chk-9"),
    ]
    assert ledger.pointers()[0].results == {4: ((0, 1, 11),)}
    ledger.forget("/chk-10")
    assert [one.checkpoint_id for one in ledger.pointers()] == [11, 9]
    ledger.discard(11)
    ledger.discard(12)
    assert [one.checkpoint_id for one in ledger.pointers()] == [9]


def test_the_next_master_never_uses_an_id_that_was_begun(directory):
    ledger = ledger_of(directory, 0)
    ledger.begin(1)
    ledger.complete(1, "/chk-1")
    ledger.begin(2)
    directory.take_over(0)
    later = ledger_of(directory, 1)
    assert later.next_checkpoint_id == 3
    assert [one.checkpoint_id for one in later.pointers()] == [1]


def test_every_run_of_a_job_has_a_number_of_its_own(directory):
    assert ledger_of(directory, 0).begin_run() == 1
    again = ledger_of(directory, 0)
    assert again.begin_run() == 2
    again.begin(5)
    directory.take_over(0)
    later = ledger_of(directory, 1)
    assert later.begin_run() == 3
    assert later.next_checkpoint_id == 6


def test_a_master_of_an_ended_term_completes_nothing(directory):
    ledger = ledger_of(directory, 0)
    ledger.begin(1)
    directory.take_over(0)
    for change in (
        lambda: ledger.begin(1),
        lambda: ledger.begin(2),
        lambda: ledger.complete(1, "/chk-1"),
        lambda: ledger.discard(1),
        lambda: ledger.end("FINISHED"),
        ledger.fence.check,
    ):
        with pytest.raises(LeadershipLostError):
            change()
    assert ledger_of(directory, 1).pointers() == []
    assert ledger_of(directory, 1).ended() is None


def test_a_damaged_counter_does_not_lead_to_old_ids(directory):
    ledger = ledger_of(directory, 0)
    ledger.begin(7)
    ledger.complete(7, "/chk-7")
    (directory.at(0) / "counters" / f"{JOB}.json").write_bytes(b"{")
    assert ledger_of(directory, 0).next_checkpoint_id > 7


def test_the_end_of_a_job_stays(directory):
    ledger = ledger_of(directory, 0)
    ledger.begin(1)
    ledger.complete(1, "/chk-1")
    ledger.end("FINISHED")
    ledger.remove()
    directory.take_over(0)
    later = ledger_of(directory, 1)
    assert later.ended() == {"status": "FINISHED", "error": None}
    assert later.pointers() == []
    assert later.next_checkpoint_id == 1
