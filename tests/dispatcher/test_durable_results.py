"""Collected records that outlive the leader: nothing is lost, nothing comes twice."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path

import pytest

from firesteel.checkpoint.storage.storage import CorruptFileError, open_storage
from firesteel.dispatcher.durable_results import (
    DurableResultReader,
    DurableResultWriter,
    reader_of_ended_job,
)
from firesteel.filesystems.file_systems import ArrowFileSystem
from firesteel.leader.job_ledger import ResultRanges
from firesteel.master.led_checkpoints import DurableCollector

LIMIT = 1 << 20


def writer_of(path: Path, term: int, ranges: ResultRanges = ()) -> DurableResultWriter:
    return DurableResultWriter(open_storage(str(path)), term, ranges, LIMIT)


def records(path: Path, term: int, after: int = 0) -> list[int]:
    reader = DurableResultReader(open_storage(str(path)), term)
    return [record for _, batch in reader.read(after, LIMIT) for record in pickle.loads(batch)]


def test_the_writer_is_a_durable_collector(tmp_path):
    assert isinstance(writer_of(tmp_path, 1), DurableCollector)


def test_records_are_visible_once_their_checkpoint_is_complete(tmp_path):
    writer = writer_of(tmp_path, 1)
    assert writer.store([1, 2]) == ((1, 1, 1),)
    assert records(tmp_path, 1) == []
    writer.publish()
    assert records(tmp_path, 1) == [1, 2]
    # The job hands them over once more when it hears that the checkpoint is complete.
    writer.add([1, 2])
    assert records(tmp_path, 1) == [1, 2]


def test_records_of_a_checkpoint_that_failed_are_stored_again_with_the_next_one(tmp_path):
    writer = writer_of(tmp_path, 1)
    writer.store([1, 2])
    assert writer.store([1, 2, 3]) == ((1, 1, 1),)
    writer.publish()
    assert records(tmp_path, 1) == [1, 2, 3]


def test_a_checkpoint_without_records_changes_nothing(tmp_path):
    writer = writer_of(tmp_path, 1)
    assert writer.store([]) == ()
    writer.publish()
    writer.store([5])
    writer.publish()
    assert writer.store([]) == ((1, 1, 1),)
    writer.publish()
    assert records(tmp_path, 1) == [5]


def test_without_checkpoints_records_are_visible_at_once(tmp_path):
    writer = writer_of(tmp_path, 1)
    writer.add([1])
    writer.add([2])
    assert records(tmp_path, 1) == [1, 2]


def test_the_next_leader_continues_after_the_restored_checkpoint(tmp_path):
    first = writer_of(tmp_path, 1)
    ranges = first.store([1, 2])
    first.publish()
    # Of a checkpoint that was never complete.
    first.store([3, 4])
    second = writer_of(tmp_path, 2, ranges)
    assert records(tmp_path, 2) == [1, 2]
    assert second.store([3]) == ((1, 1, 1), (2, 2, 2))
    second.publish()
    # The first leader wakes up. It must not change the batches of the second one.
    first.store([30, 40])
    first.publish()
    assert records(tmp_path, 2) == [1, 2, 3]
    assert records(tmp_path, 2, after=1) == [3]


def test_the_client_of_an_ended_job_reads_the_rest_from_the_next_leader(tmp_path):
    assert reader_of_ended_job(open_storage(str(tmp_path))) is None
    first = writer_of(tmp_path, 1)
    ranges = first.store([1])
    first.publish()
    second = writer_of(tmp_path, 2, ranges)
    second.add([2])
    reader = reader_of_ended_job(open_storage(str(tmp_path)))
    assert reader is not None
    assert [number for number, _ in reader.read(1, LIMIT)] == [2]
    assert reader.generation() == 1


def test_batches_are_deleted_once_they_are_confirmed(tmp_path):
    writer = writer_of(tmp_path, 1)
    for record in range(3):
        writer.add([record])
    reader = DurableResultReader(open_storage(str(tmp_path)), 1)
    assert [number for number, _ in reader.read(0, 1)] == [1]
    assert [number for number, _ in reader.read(0, LIMIT)] == [1, 2, 3]
    assert [number for number, _ in reader.read(2, LIMIT)] == [3]
    assert not (tmp_path / "000000000001-1").exists()
    assert not (tmp_path / "000000000002-1").exists()


def test_nothing_is_written_after_the_client_has_closed_its_iterator(tmp_path):
    writer = writer_of(tmp_path, 1)
    writer.add([1])
    DurableResultReader(open_storage(str(tmp_path)), 1).close()
    writer.add([2])
    assert records(tmp_path, 1) == []
    assert not [
        path for path in tmp_path.iterdir() if path.name.endswith("-1") and path.name[0] == "0"
    ]


def test_a_job_that_starts_over_has_a_new_generation(tmp_path):
    storage = open_storage(str(tmp_path))
    writer_of(tmp_path, 1).add([1])
    assert DurableResultReader(storage, 1).generation() == 1
    assert DurableResultReader(storage, 2).generation() is None
    writer_of(tmp_path, 2).add([1])
    assert DurableResultReader(storage, 2).generation() == 2


def test_a_list_that_is_replaced_while_it_is_read(s3, monkeypatch):
    """A client of S3 asks for the size of an object, and then for as many bytes."""
    storage = open_storage(f"s3://checkpoints/{uuid.uuid4().hex}", s3)
    writer = DurableResultWriter(storage, 1, (), LIMIT)
    reader = DurableResultReader(storage, 1)
    sizes: list[int] = []

    def read(self: ArrowFileSystem, path: str) -> bytes:
        with self._fs.open_input_stream(path, compression=None) as stream:
            if not sizes:
                writer.add([1, 2])
            found = bytes(stream.read())
        sizes.append(len(found))
        return found

    monkeypatch.setattr(ArrowFileSystem, "read", read)
    assert reader.generation() == 1
    assert sizes == [len("[]"), len("[[1, 1, 1]]")]


def test_a_damaged_list_is_named(tmp_path):
    (tmp_path / "published-1").write_text("[[1, 1")
    with pytest.raises(CorruptFileError, match="published-1"):
        records(tmp_path, 1)
