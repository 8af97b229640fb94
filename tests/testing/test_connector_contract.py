"""The test kit for connectors: our own pass it, and broken ones do not."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from firesteel.common import Encoder, Row, Types
from firesteel.connectors.collection import CollectionSource
from firesteel.connectors.number_sequence import NumberSequenceSource
from firesteel.datastream.connectors.base import Committer, Sink, SinkWriter, SourceSplit
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    RollingPolicy,
    StreamFormat,
)
from firesteel.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcSink,
    JdbcSource,
)
from firesteel.datastream.formats.parquet import ParquetColumnarRowInputFormat
from firesteel.testing import ContractViolationError, ListSink, check_sink, check_source
from tests.servers.postgres import PostgresServer

RECORDS = list(range(40))
SEEDS = range(3)


# Sources of columns


def test_a_source_of_columns_is_checked_by_its_records(tmp_path: Path) -> None:
    rows = Types.ROW_NAMED(["n"], [Types.LONG()])
    pq.write_table(pa.table({"n": RECORDS}), tmp_path / "numbers.parquet", row_group_size=7)
    reads = ParquetColumnarRowInputFormat(rows)
    source = FileSource.for_bulk_file_format(reads, str(tmp_path)).build()
    check_source(source, [Row(n=number) for number in RECORDS], seeds=SEEDS)


# Our own connectors


@pytest.mark.parametrize(
    "source",
    [
        NumberSequenceSource(0, 39),
        CollectionSource(RECORDS),
        DataGeneratorSource(lambda index: index, 40),
    ],
    ids=repr,
)
def test_sources_of_numbers(source: Any) -> None:
    check_source(source, RECORDS, seeds=SEEDS)


def test_file_source(tmp_path: Path) -> None:
    for number in range(4):
        lines = [f"{number} {line}\n" for line in range(10)]
        (tmp_path / f"{number}.txt").write_text("".join(lines))
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    expected = [f"{number} {line}" for number in range(4) for line in range(10)]
    check_source(source.build(), expected, seeds=SEEDS)


def at(url: str) -> JdbcConnectionOptions:
    return JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).build()


def test_jdbc_source(tmp_path: Path) -> None:
    file = tmp_path / "test.db"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE numbers (id INTEGER PRIMARY KEY)")
        database.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in RECORDS])
    type_info = Types.ROW_NAMED(["id"], [Types.INT()])
    builder = JdbcSource.builder().set_connection_options(at(f"jdbc:sqlite:{file}"))
    builder.set_table("numbers").set_type_info(type_info).set_split_column("id").set_fetch_size(4)
    check_source(builder.build(), [Row(id=number) for number in RECORDS], seeds=SEEDS)


def test_list_sink() -> None:
    def create() -> tuple[Sink, Callable[[], Any]]:
        sink = ListSink()
        return sink, sink.values

    check_sink(create, RECORDS, seeds=SEEDS)


def test_file_sink(tmp_path: Path) -> None:
    def create() -> tuple[Sink, Callable[[], Any]]:
        directory = tmp_path / uuid.uuid4().hex
        sink = (
            FileSink.for_row_format(str(directory), Encoder.simple_string_encoder())
            .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
            .build()
        )

        def visible() -> list[int]:
            files = [path for path in directory.glob("*") if not path.name.startswith(".")]
            return [int(line) for path in files for line in path.read_text().splitlines()]

        return sink, visible

    check_sink(create, RECORDS, seeds=SEEDS)


ROWS = [(number, f"word {number}") for number in range(40)]
PAIR = Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()])


def named(prefix: str) -> JdbcExactlyOnceOptions:
    return JdbcExactlyOnceOptions.builder().with_transaction_id_prefix(prefix).build()


@pytest.mark.parametrize("exactly_once", [True, False])
def test_changelogs_in_sqlite(tmp_path: Path, exactly_once: bool) -> None:
    def create() -> tuple[Sink, Callable[[], Any]]:
        file = tmp_path / f"{uuid.uuid4().hex}.db"
        database = sqlite3.connect(file)
        database.execute("CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT)")
        options = named("words") if exactly_once else None
        url = f"jdbc:sqlite:{file}"
        sink = JdbcSink.changelog_sink("words", PAIR, ["id"], at(url), None, options)
        return sink, lambda: database.execute("SELECT * FROM words").fetchall()

    check_sink(create, ROWS, exactly_once=exactly_once, seeds=SEEDS)


def test_prepared_transactions(postgres: PostgresServer) -> None:
    def create() -> tuple[Sink, Callable[[], Any]]:
        table = postgres.table("id INT, word TEXT")
        sql = f"INSERT INTO {table} VALUES (?, ?)"
        sink = JdbcSink.exactly_once_sink(sql, PAIR, at(postgres.url), None, named(table))
        return sink, lambda: postgres.rows(table)

    check_sink(create, ROWS, seeds=[1])


# Broken ones


class WithoutPosition(NumberSequenceSource):
    """Its readers start over."""

    def create_reader(self, context: Any) -> Any:
        reader = super().create_reader(context)
        reader.snapshot_splits = lambda: [  # type: ignore[method-assign]
            SourceSplit(split.split_id, split.properties)
            for split in type(reader).snapshot_splits(reader)
        ]
        return reader


class WithBytes(NumberSequenceSource):
    def create_enumerator(self, parallelism: int, state: Any = None) -> Any:
        enumerator = super().create_enumerator(parallelism, state)
        enumerator.snapshot_state = lambda: {1, 2}  # type: ignore[method-assign]
        return enumerator


class Greedy(NumberSequenceSource):
    def create_reader(self, context: Any) -> Any:
        reader = super().create_reader(context)
        reader.read = lambda limit: type(reader).read(reader, limit + 1)  # type: ignore[method-assign]
        return reader


class Forgetful(NumberSequenceSource):
    """Its enumerator finds everything again."""

    def create_enumerator(self, parallelism: int, state: Any = None) -> Any:
        return super().create_enumerator(parallelism)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (WithoutPosition(0, 39), "a restored reader returned"),
        (WithBytes(0, 39), "the state of the enumerator is not JSON"),
        (Greedy(0, 39), r"read\(\d\) returned \d records"),
        (Forgetful(0, 39), "finds splits again"),
        (NumberSequenceSource(0, 38), "these records are missing: {39: 1}"),
        (NumberSequenceSource(0, 40), "these records are too many: {40: 1}"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_broken_sources(source: Any, text: str) -> None:
    with pytest.raises(ContractViolationError, match=text):
        check_source(source, RECORDS, seeds=SEEDS)


class Store(Sink):
    """A file with a line for each record, and ways to break the contract."""

    def __init__(self, file: Path, broken: str) -> None:
        self.file = file
        self.broken = broken

    def create_writer(self, context: Any, state: Any = None) -> SinkWriter:
        return StoreWriter(self, state if self.broken != "state is lost" else None)

    def create_committer(self) -> Committer:
        return StoreCommitter(self)

    def append(self, name: str, values: list[Any]) -> None:
        with self.file.open("a") as file:
            file.write(json.dumps([name, values]) + "\n")

    def batches(self) -> list[Any]:
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def values(self) -> list[Any]:
        return [value for _, values in self.batches() for value in values]


class StoreWriter(SinkWriter):
    def __init__(self, store: Store, state: Any) -> None:
        self.store = store
        self.pending: list[Any] = []
        for one in state or ():
            self.pending += one if isinstance(one, list) else [one]

    def write(self, value: Any, context: Any) -> None:
        if self.store.broken == "visible at once":
            self.store.append(uuid.uuid4().hex, [value])
        else:
            self.pending.append(value)

    def prepare_commit(self, end_of_input: bool) -> list[Any]:
        values, self.pending = self.pending, []
        if self.store.broken == "committables are no JSON":
            return [{1, 2}]
        return [[uuid.uuid4().hex, values]] if values else []

    def snapshot_state(self) -> Any:
        return self.pending


class StoreCommitter(Committer):
    def __init__(self, store: Store) -> None:
        self.store = store

    def commit(self, committables: Any) -> None:
        if self.store.broken == "commits are lost":
            return
        known = {name for name, _ in self.store.batches()}
        for name, values in committables:
            if name not in known or self.store.broken == "commits repeat":
                self.store.append(name, values)


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        ("", ""),
        ("visible at once", "after writing without a commit, these records are too many"),
        ("committables are no JSON", "a committable is not JSON"),
        ("commits are lost", "after a commit, these records are missing"),
        ("commits repeat", "after a repeated commit, these records are too many"),
        ("state is lost", r"a job with restarts \(seed \d+\), these records are missing"),
    ],
)
def test_broken_sinks(tmp_path: Path, broken: str, text: str) -> None:
    def create() -> tuple[Sink, Callable[[], Any]]:
        file = tmp_path / uuid.uuid4().hex
        file.touch()
        store = Store(file, broken)
        return store, store.values

    if not broken:
        check_sink(create, RECORDS)
        return
    with pytest.raises(ContractViolationError, match=text):
        check_sink(create, RECORDS, seeds=range(10))
