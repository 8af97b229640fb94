"""Compaction of FileSink: small files become one before they are visible."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Encoder
from firesteel.datastream.connectors.base import WriteContext, WriterContext
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
)
from firesteel.errors import InvalidProgramError
from firesteel.testing import check_sink

NOW = WriteContext()
CONTEXT = WriterContext(0, 1, "job")


def strategy(size: int | None = None, checkpoints: int | None = None) -> FileCompactStrategy:
    builder = FileCompactStrategy.builder()
    if size is not None:
        builder.set_size_threshold(size)
    if checkpoints is not None:
        builder.enable_compaction_on_checkpoint(checkpoints)
    return builder.build()


def sink_to(
    directory: Path, rule: FileCompactStrategy, rolling: RollingPolicy | None = None
) -> FileSink:
    return (
        FileSink.for_row_format(str(directory), Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(rolling or RollingPolicy.on_checkpoint_rolling_policy())
        .with_output_file_config(OutputFileConfig("part", ".txt"))
        .enable_compact(rule, FileCompactor.concat_file_compactor())
        .build()
    )


def visible(directory: Path) -> dict[str, str]:
    files = [path for path in directory.glob("*") if not path.name.startswith(".")]
    return {path.name: path.read_text() for path in files}


def hidden(directory: Path) -> list[str]:
    return [path.name for path in directory.glob(".*")]


def commit(sink: FileSink, committables: list[Any]) -> None:
    committer = sink.create_committer()
    committer.commit(json.loads(json.dumps(committables)))
    committer.close()


def test_files_wait_for_their_size(tmp_path: Path) -> None:
    sink = sink_to(tmp_path, strategy(size=6))
    writer = sink.create_writer(CONTEXT)
    for text in ("a", "b"):
        writer.write(text, NOW)
        assert writer.prepare_commit(end_of_input=False) == []
    assert len(hidden(tmp_path)) == 2
    writer.write("c", NOW)
    committables = writer.prepare_commit(end_of_input=False)
    assert visible(tmp_path) == {}
    for _ in range(2):
        commit(sink, committables)
        [(name, content)] = visible(tmp_path).items()
        assert content == "a\nb\nc\n"
        assert name.startswith("compacted-part-")
        assert name.endswith(".txt")
        assert hidden(tmp_path) == []
    writer.close()


def test_files_wait_for_checkpoints_and_for_the_end(tmp_path: Path) -> None:
    sink = sink_to(tmp_path, strategy(checkpoints=2))
    writer = sink.create_writer(CONTEXT)
    counts = []
    for text in "abcde":
        writer.write(text, NOW)
        ready = writer.prepare_commit(end_of_input=text == "e")
        counts.append(len(ready))
        commit(sink, ready)
    assert counts == [0, 1, 0, 1, 1]
    assert sorted(visible(tmp_path).values()) == ["a\nb\n", "c\nd\n", "e\n"]
    writer.close()


def test_a_restored_writer_merges_the_files_of_the_lost_one(tmp_path: Path) -> None:
    sink = sink_to(tmp_path, strategy(size=4))
    writer = sink.create_writer(CONTEXT)
    writer.write("a", NOW)
    assert writer.prepare_commit(end_of_input=False) == []
    state = json.loads(json.dumps(writer.snapshot_state()))
    writer.write("lost", NOW)
    writer.close()
    for attempt in range(2):
        # The second one returns to a snapshot whose file has been merged.
        again = sink.create_writer(CONTEXT, state)
        again.write(f"b{attempt}", NOW)
        commit(sink, again.prepare_commit(end_of_input=True))
        again.close()
    assert sorted(visible(tmp_path).values()) == ["a\nb0\n", "b1\n"]
    assert hidden(tmp_path) == []


def test_files_in_progress_of_a_snapshot_are_merged_once(tmp_path: Path) -> None:
    """Their writer may be alive, and a later snapshot may have more of their bytes."""
    never = RollingPolicy.default_rolling_policy(part_size=1000)
    sink = sink_to(tmp_path, strategy(checkpoints=1), never)
    writer = sink.create_writer(CONTEXT)
    states = []
    for text in "abc":
        writer.write(text, NOW)
        writer.prepare_commit(end_of_input=False)
        states.append(json.loads(json.dumps(writer.snapshot_state())))
    for state in (states[1], states[1], states[0], states[2]):
        restored = sink.create_writer(WriterContext(0, 1, "other"), state)
        commit(sink, restored.prepare_commit(end_of_input=True))
        restored.close()
    assert sorted(visible(tmp_path).values()) == ["a\nb\n", "c\n"]


@pytest.mark.parametrize("rule", [strategy(size=20), strategy(checkpoints=2)])
def test_no_record_is_lost(tmp_path: Path, rule: FileCompactStrategy) -> None:
    number = 0

    def create() -> tuple[FileSink, Callable[[], list[str]]]:
        nonlocal number
        number += 1
        directory = tmp_path / str(number)
        sink = sink_to(directory, rule)
        return sink, lambda: "".join(visible(directory).values()).split()

    # tests/recovery/test_bulk_files.py looks for repeated records.
    check_sink(create, [str(n) for n in range(40)], exactly_once=False)


def test_several_files_cannot_be_identical_to_one(tmp_path: Path) -> None:
    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    identical = FileCompactor.identical_file_compactor()
    sink = builder.enable_compact(strategy(checkpoints=2), identical).build()
    writer = sink.create_writer(CONTEXT)
    writer.write("a", NOW)
    writer.prepare_commit(end_of_input=False)
    writer.write("b", NOW)
    with pytest.raises(Exception, match="identical_file_compactor merges no files"):
        writer.prepare_commit(end_of_input=False)
    writer.close()


def test_programs_that_cannot_work() -> None:
    with pytest.raises(InvalidProgramError, match="set_size_threshold"):
        FileCompactStrategy.builder().build()
    with pytest.raises(ValueError, match="positive"):
        FileCompactStrategy.builder().set_size_threshold(0)
    builder = FileSink.for_row_format("out", Encoder.simple_string_encoder())
    with pytest.raises(TypeError, match="FileCompactor, got None"):
        builder.enable_compact(strategy(size=1), None)  # type: ignore[arg-type]
