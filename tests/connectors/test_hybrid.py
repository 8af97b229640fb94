"""HybridSource: one source after the other, with a switch that survives failures."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common import Configuration, Row, Types, WatermarkStrategy
from firesteel.datastream.connectors.base import Boundedness, ReaderContext
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.datastream.connectors.hybrid_source import HybridSource
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.formats.parquet import ParquetColumnarRowInputFormat
from firesteel.errors import InvalidProgramError
from firesteel.testing import Fault, JobHarness
from tests.recovery.jobs import RESTARTS
from tests.thoroughness import examples


class NumbersAsText(NumberSequenceSource):
    """Numbers that stand for the records of a topic."""

    def get_produced_type(self) -> Any:
        return None


def _files(root: Path, counts: list[int]) -> Any:
    (root / "in").mkdir(exist_ok=True)
    start = 0
    for number, count in enumerate(counts):
        lines = "".join(f"{n}\n" for n in range(start, start + count))
        (root / "in" / f"{number}.txt").write_text(lines)
        start += count
    text = StreamFormat.text_line_format()
    return FileSource.for_record_stream_format(text, str(root / "in")).build()


def _hybrid(root: Path, counts: list[int], length: int, by_function: bool) -> HybridSource:
    total = sum(counts)
    following = NumbersAsText(total, total + length - 1)
    builder = HybridSource.builder(_files(root, counts))
    if by_function:
        # The function learns where the files ended.
        def topic(context: Any) -> Any:
            assert context.get_previous_enumerator().is_complete()
            return following

        return builder.add_source(topic, Boundedness.BOUNDED).build()
    return builder.add_source(following).build()


@settings(
    deadline=None,
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    counts=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    length=st.integers(1, 30),
    by_function=st.booleans(),
    parallelism=st.integers(1, 3),
    seed=st.integers(0, 10_000),
)
def test_each_record_once_and_the_files_first(counts, length, by_function, parallelism, seed):
    random = Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        source = _hybrid(root, counts, length, by_function)

        def program(env: Any) -> Any:
            stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "hybrid")
            return stream.uid("hybrid").map(int, Types.LONG())

        configuration = Configuration(RESTARTS)
        configuration.set_string("restart-strategy.fixed-delay.attempts", "1000")
        harness = JobHarness(
            program,
            parallelism=parallelism,
            records_per_epoch=3,
            checkpoint_every=2,
            configuration=configuration,
            seed=seed,
        )
        for _ in range(200):
            action = random.random()
            if action < 0.08:
                harness.crash()
            faults = {}
            if action > 0.8:
                faults = {random.choice(harness.places()): random.choice([*Fault])}
            if not harness.run_epoch(faults):
                break
        else:
            harness.run()
        total = sum(counts)
        assert sorted(harness.collected) == list(range(total + length))
        phases = [number >= total for number in harness.collected]
        assert phases == sorted(phases), "a record of the second source before the files ended"


def test_positions_and_state_are_json(driver, tmp_path):
    source = _hybrid(tmp_path, [3, 4], 5, True)
    enumerator = source.create_enumerator(2)
    splits = driver.persisted(list(enumerator.discover_splits()))
    enumerator.discover_splits()
    assert [split.split_id[:2] for split in splits] == ["0:", "0:"]
    reader = source.create_reader(ReaderContext(0, 1))
    reader.add_splits(splits)
    read = list(reader.read(2))
    saved = driver.persisted(reader.snapshot_splits())
    again = source.create_reader(ReaderContext(0, 1))
    again.add_splits(saved)
    while again.snapshot_splits():
        read += again.read(3)
    assert read == [str(number) for number in range(7)]
    # The restored enumerator switches, because its readers have read everything.
    restored = source.create_enumerator(2, driver.through_json(enumerator.snapshot_state()))
    assert restored.discover_splits() == []
    assert not restored.is_complete()
    restored.all_splits_read()
    following = driver.persisted(list(restored.discover_splits()))
    assert {split.properties["source"] for split in following} == {1}
    again.add_splits(following)
    numbers: list[Any] = []
    while again.snapshot_splits():
        numbers += again.read(3)
    assert sorted(numbers) == list(range(7, 12))
    assert again.current_split() is not None
    final = source.create_enumerator(2, driver.through_json(restored.snapshot_state()))
    assert final.is_complete()
    for one in (enumerator, restored, final):
        one.close()


class Confirming(NumberSequenceSource):
    """Tells the place of its server up to which checkpoints contain its records."""

    confirmed: list[Any]

    def create_reader(self, context: ReaderContext) -> Any:
        reader: Any = super().create_reader(context)
        positions: dict[int, Any] = {}

        def begin(checkpoint_id: int) -> None:
            positions[checkpoint_id] = [split.position for split in reader.snapshot_splits()]

        reader.begin_checkpoint = begin
        reader.notify_checkpoint_complete = lambda number: self.confirmed.append(positions[number])
        return reader


def test_a_reader_learns_of_complete_checkpoints() -> None:
    """A server would keep all that is not confirmed: the log of PostgreSQL, a queue of RabbitMQ."""
    following = Confirming(4, 9)
    following.confirmed = []
    hybrid = HybridSource.builder(NumberSequenceSource(1, 3)).add_source(following).build()
    reader = hybrid.create_reader(ReaderContext(0, 1))
    # There is no reader yet.
    reader.begin_checkpoint(1)
    reader.notify_checkpoint_complete(1)
    enumerator = hybrid.create_enumerator(1)
    reader.add_splits(enumerator.discover_splits())
    assert list(reader.read(10)) == [1, 2, 3]
    enumerator.all_splits_read()
    reader.add_splits(enumerator.discover_splits())
    assert list(reader.read(2)) == [4, 5]
    reader.begin_checkpoint(2)
    assert list(reader.read(2)) == [6, 7]
    reader.notify_checkpoint_complete(2)
    assert following.confirmed == [[6]]


def test_watermarks_of_a_source_that_does_not_name_its_splits(tmp_path):
    from firesteel.common import Duration
    from firesteel.datastream.window import TumblingEventTimeWindows
    from firesteel.testing import ScriptedSource, Timed

    history = ScriptedSource([Timed("a", 1000), Timed("a", 2000)])
    present = ScriptedSource([Timed("a", 11_000), Timed("a", 21_000), Timed("a", 31_000)])
    source = HybridSource.builder(history).add_source(present).build()

    def program(env: Any) -> Any:
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        stream = env.from_source(source, strategy, "hybrid").map(lambda word: (word, 1))
        keyed = stream.key_by(lambda pair: pair[0])
        windows = keyed.window(TumblingEventTimeWindows.of(Duration.of_seconds(10)))
        return windows.reduce(lambda a, b: (a[0], a[1] + b[1]))

    harness = JobHarness(program, parallelism=1, records_per_epoch=1)
    harness.run()
    assert harness.collected == [("a", 2), ("a", 1), ("a", 1), ("a", 1)]


def test_what_does_not_end_comes_last(tmp_path):
    text = StreamFormat.text_line_format()
    from firesteel.common import Duration

    endless = (
        FileSource.for_record_stream_format(text, str(tmp_path))
        .monitor_continuously(Duration.of_seconds(1))
        .build()
    )
    builder = HybridSource.builder(NumberSequenceSource(1, 3)).add_source(endless)
    assert builder.build().get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    with pytest.raises(InvalidProgramError, match="does not end"):
        builder.add_source(NumberSequenceSource(4, 5))
    with pytest.raises(TypeError, match="boundedness"):
        HybridSource.builder(NumberSequenceSource(1, 3)).add_source(lambda context: endless)
    with pytest.raises(TypeError, match="Source or a function"):
        HybridSource.builder(None)  # type: ignore[arg-type]  # refused


def test_files_of_columns_give_records(tmp_path):
    type_info = Types.ROW_NAMED(["n"], [Types.LONG()])
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "numbers.parquet")
    reads = ParquetColumnarRowInputFormat(type_info)
    files = FileSource.for_bulk_file_format(reads, str(tmp_path)).build()
    source = HybridSource.builder(files).add_source(NumberSequenceSource(3, 4)).build()
    harness = JobHarness(
        lambda env: env.from_source(source, WatermarkStrategy.no_watermarks(), "both")
    )
    harness.run()
    assert harness.collected == [Row(n=1), Row(n=2), 3, 4]
