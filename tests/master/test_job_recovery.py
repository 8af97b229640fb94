"""The checkpoint from which a job starts that an earlier master has run."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.errors import JobExecutionError
from firesteel.leader.documents import Documents
from firesteel.leader.fence import Fence
from firesteel.leader.file_leases import FileStore, LeaseDirectory
from firesteel.leader.job_ledger import JobLedger
from firesteel.testing import ListSink
from tests.recovery.master_process import JOB_ID, LedHarness


@pytest.fixture
def leases(tmp_path: Path) -> LeaseDirectory:
    made = LeaseDirectory(tmp_path / "group")
    made.create()
    return made


@pytest.fixture
def ledger(leases: LeaseDirectory) -> JobLedger:
    documents = Documents(FileStore(leases, 0), "group", b"key")
    return JobLedger(documents, Fence(str(leases.at(0)), "fence", 0), JOB_ID)


def run(ledger: JobLedger) -> list[int]:
    sink = ListSink()
    LedHarness(ledger, lambda env: env.from_collection([1, 2, 3]).sink_to(sink)).run()
    return sorted(sink.values())


def test_a_job_without_entries_starts_from_its_beginning(ledger):
    assert run(ledger) == [1, 2, 3]


@pytest.mark.parametrize("damage", ["files", "entry"])
def test_a_job_whose_checkpoints_are_all_unusable_does_not_start_over(
    damage, ledger, leases, tmp_path, caplog
):
    """Its sinks have written records already, and would write them once more."""
    ledger.begin(1)
    ledger.complete(1, str(tmp_path / "missing"))
    if damage == "entry":
        [entry] = (leases.at(0) / "checkpoints").iterdir()
        entry.write_bytes(b"{")
    with pytest.raises(JobExecutionError, match=r"does not start over.* -s "):
        run(ledger)
    assert "skipped" in caplog.text
