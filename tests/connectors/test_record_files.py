"""Record files: a reader that is stopped anywhere returns each record once and in order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.connectors.record_files import (
    RecordFileMissingError,
    RecordFileSink,
    RecordFileSource,
)
from firesteel.datastream.connectors.base import ReaderContext, WriteContext, WriterContext
from firesteel.errors import WriteFailedError

Batch = tuple[list[int], list[int] | None]


def write(directory: str, batches: list[Batch], subtask: int = 0, *, commit: bool = True) -> None:
    sink = RecordFileSink(directory)
    writer = sink.create_writer(WriterContext(subtask, 2, "job"))
    for values, timestamps in batches:
        writer.write_batch(values, timestamps, WriteContext())
    committables = writer.prepare_commit(end_of_input=True)
    writer.close()
    if commit:
        committer = sink.create_committer()
        committer.commit(committables)
        committer.commit(committables)


@given(
    st.lists(st.tuples(st.lists(st.integers(), min_size=1, max_size=5), st.booleans()), max_size=5),
    st.lists(st.integers(1, 4), max_size=10),
)
def test_any_cut_and_any_restart_gives_each_record_once_in_order(
    written: list[tuple[list[int], bool]], limits: list[int]
) -> None:
    batches: list[Batch] = [(v, list(range(len(v))) if timed else None) for v, timed in written]
    expected = [
        (value, None if stamps is None else stamps[i])
        for values, stamps in batches
        for i, value in enumerate(values)
    ]
    with TemporaryDirectory() as directory:
        write(directory, batches)
        source = RecordFileSource(directory)
        splits = list(source.create_enumerator(1).discover_splits())
        found: list[tuple[int, int | None]] = []
        for limit in [*limits, *[100] * (len(batches) + 1)]:
            # Each reader continues where the one before it stopped.
            reader = source.create_reader(ReaderContext(0, 1))
            if splits:
                reader.add_splits(splits)
            values = reader.read(limit)
            times: Sequence[int | None] = reader.timestamps() or [None] * len(values)
            found += zip(values, times, strict=True)
            splits = reader.snapshot_splits()
            reader.close()
        assert found == expected
        assert splits == []


def test_files_that_were_not_committed_are_not_read(tmp_path: Path) -> None:
    write(str(tmp_path), [([1], None)], subtask=0)
    write(str(tmp_path), [([2], None)], subtask=1, commit=False)
    source = RecordFileSource(str(tmp_path))
    (split,) = source.create_enumerator(2).discover_splits()
    reader = source.create_reader(ReaderContext(0, 2))
    reader.add_splits([split])
    assert reader.read(10) == [1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = RecordFileSink(str(tmp_path)).create_writer(WriterContext(0, 1, "job"))
    (path,) = tmp_path.iterdir()
    full = open("/dev/full", "wb")  # noqa: SIM115 - as the writer does
    monkeypatch.setattr(writer, "_file", full)
    with pytest.raises(WriteFailedError) as caught:
        writer.write_batch(["x" * 1_000_000], None, WriteContext())
    assert caught.value.path == str(path)


def test_a_missing_file_says_what_a_cluster_needs(tmp_path: Path) -> None:
    write(str(tmp_path), [([1], None)])
    source = RecordFileSource(str(tmp_path))
    (split,) = source.create_enumerator(2).discover_splits()
    Path(split.properties["path"]).unlink()
    reader = source.create_reader(ReaderContext(0, 2))
    reader.add_splits([split])
    with pytest.raises(RecordFileMissingError, match=r"firesteel\.working-dir"):
        reader.read(10)
