"""PostgresCdcSource on a real server, without Spark: a table, its changes, and restarts."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from firesteel.common import Configuration, Row, RowKind, Types, WatermarkStrategy
from firesteel.connectors.postgres_cdc.errors import (
    ChangeStreamError,
    ReplicationSlotMovedError,
)
from firesteel.datastream.connectors.base import ReaderContext, SourceReader, SourceSplit
from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions
from firesteel.datastream.connectors.postgres_cdc import (
    PostgresCdcSource,
    PostgresCdcSourceBuilder,
)
from firesteel.testing import Fault, JobHarness
from tests.connectors.conftest import persisted
from tests.recovery.jobs import RESTARTS
from tests.servers.postgres import PostgresServer, running_postgres

WORDS = Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()])
PATIENCE = 60.0


@pytest.fixture
def slot(postgres: PostgresServer) -> Iterator[str]:
    name = f"slot_{uuid.uuid4().hex[:8]}"
    yield name
    drop(postgres, name)


def drop(server: PostgresServer, slot: str) -> None:
    import psycopg

    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            server.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                "WHERE slot_name = %s",
                slot,
            )
        except psycopg.Error:
            assert time.monotonic() < deadline, f"the slot {slot} is still in use"
            time.sleep(0.05)
        else:
            return


def builder(server: PostgresServer, table: str, slot: str) -> PostgresCdcSourceBuilder:
    connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(server.url)
    return (
        PostgresCdcSource.builder()
        .set_connection_options(connection.build())
        .set_table(table)
        .set_type_info(WORDS)
        .set_slot_name(slot)
        .set_fetch_size(3)
    )


def opened(source: PostgresCdcSource, splits: list[SourceSplit] | None = None) -> SourceReader:
    reader = source.create_reader(ReaderContext(0, 1))
    if splits is None:
        splits = list(source.create_enumerator(1).discover_splits())
    reader.add_splits(persisted(splits))
    return reader


def read(reader: SourceReader, count: int, limit: int = 100) -> list[str]:
    """So many records, as text with their kinds."""
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count:
        found += reader.read(min(limit, count - len(found)))
        assert time.monotonic() < deadline, found
    return [f"{row.get_row_kind()}{list(row)}" for row in found]


def test_rows_and_then_changes(postgres: PostgresServer, slot: str) -> None:
    table = postgres.table("id INT PRIMARY KEY, word TEXT, other INT")
    postgres.execute(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
    reader = opened(builder(postgres, table, slot).build())
    assert read(reader, 4) == ["+I[1, 'a']", "+I[2, 'b']", "+I[3, 'c']", "+I[4, 'd']"]
    postgres.execute(f"INSERT INTO {table} VALUES (5, 'é')")
    postgres.execute(f"UPDATE {table} SET word = 'A' WHERE id = 1")
    postgres.execute(f"DELETE FROM {table} WHERE id = 2")
    postgres.execute(f"UPDATE {table} SET id = 6 WHERE id = 3")
    postgres.execute(f"UPDATE {table} SET word = NULL WHERE id = 4")
    assert read(reader, 6) == [
        "+I[5, 'é']",
        "+U[1, 'A']",
        "-D[2, None]",
        "-D[3, None]",
        "+I[6, 'c']",
        "+U[4, None]",
    ]
    reader.close()


def test_old_rows_with_a_full_replica_identity(postgres: PostgresServer, slot: str) -> None:
    table = postgres.table("id INT PRIMARY KEY, word TEXT")
    postgres.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    large = "x" * 100_000
    postgres.execute(f"ALTER TABLE {table} ALTER word SET STORAGE EXTERNAL")
    postgres.execute(f"INSERT INTO {table} VALUES (1, %s)", large)
    reader = opened(builder(postgres, table, slot).build())
    read(reader, 1)
    postgres.execute(f"UPDATE {table} SET id = 2")
    assert read(reader, 2) == [f"-U[1, '{large}']", f"+U[2, '{large}']"]
    postgres.execute(f"DELETE FROM {table}")
    assert read(reader, 1) == [f"-D[2, '{large}']"]
    reader.close()


def test_a_large_value_that_the_server_does_not_send(postgres: PostgresServer, slot: str) -> None:
    table = postgres.table("id INT PRIMARY KEY, word TEXT, other INT")
    postgres.execute(f"ALTER TABLE {table} ALTER word SET STORAGE EXTERNAL")
    postgres.execute(f"INSERT INTO {table} VALUES (1, %s)", "x" * 100_000)
    reader = opened(builder(postgres, table, slot).build())
    read(reader, 1)
    postgres.execute(f"UPDATE {table} SET other = 2")
    with pytest.raises(ChangeStreamError, match="REPLICA IDENTITY FULL"):
        read(reader, 1)
    reader.close()


def test_only_changes(postgres: PostgresServer, slot: str) -> None:
    table = postgres.table("id INT PRIMARY KEY, word TEXT")
    postgres.execute(f"INSERT INTO {table} VALUES (1, 'a')")
    reader = opened(builder(postgres, table, slot).set_snapshot(False).build())
    postgres.execute(f"INSERT INTO {table} VALUES (2, 'b')")
    assert read(reader, 1) == ["+I[2, 'b']"]
    reader.close()


def test_a_transaction_that_spans_the_snapshot(postgres: PostgresServer, slot: str) -> None:
    """It begins before the table is read, and commits while the table is read."""
    table = postgres.table("id INT PRIMARY KEY, word TEXT")
    postgres.execute(f"INSERT INTO {table} SELECT n, 'a' FROM generate_series(1, 9) AS n")
    source = builder(postgres, table, slot).build()
    splits = list(source.create_enumerator(1).discover_splits())
    with postgres.connect(autocommit=False) as writer:
        writer.execute(f"UPDATE {table} SET word = 'b' WHERE id IN (2, 8)")
        reader = opened(source, splits)
        assert read(reader, 4, limit=2)[1] == "+I[2, 'a']"
        postgres.execute(f"UPDATE {table} SET word = 'c' WHERE id = 1")
        middle = reader.snapshot_splits()
        reader.close()
        writer.commit()
    # A second transaction reads the rest, and sees 8 with its change, but not 2.
    postgres.execute(f"UPDATE {table} SET id = 20 WHERE id = 3")
    postgres.execute(f"UPDATE {table} SET id = -1 WHERE id = 9")
    reader = opened(source, middle)
    rest = read(reader, 9, limit=2)
    assert rest[:5] == ["+I[5, 'a']", "+I[6, 'a']", "+I[7, 'a']", "+I[8, 'b']", "+I[20, 'a']"]
    # -1 has moved from a range that sees it to one that does not.
    assert rest[5:] == ["+U[1, 'c']", "+U[2, 'b']", "-D[3, None]", "+I[-1, 'a']"]
    reader.close()


def test_positions_inside_a_transaction(postgres: PostgresServer, slot: str) -> None:
    table = postgres.table("id INT PRIMARY KEY, word TEXT")
    source = builder(postgres, table, slot).build()
    reader = opened(source)
    assert reader.read(10) == []
    postgres.execute(f"INSERT INTO {table} SELECT n, 'a' FROM generate_series(1, 7) AS n")
    postgres.execute(f"INSERT INTO {table} SELECT n, 'b' FROM generate_series(8, 9) AS n")
    found = []
    for _ in range(9):
        found += read(reader, 1)
        saved = reader.snapshot_splits()
        reader.close()
        reader = opened(source, saved)
    assert found == [f"+I[{n}, '{'a' if n < 8 else 'b'}']" for n in range(1, 10)]
    reader.close()


def test_complete_checkpoints_release_the_log_and_nothing_else_does(
    postgres: PostgresServer, slot: str
) -> None:
    def confirmed() -> Any:
        return postgres.execute(
            "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = %s", slot
        )

    table = postgres.table("id INT PRIMARY KEY, word TEXT")
    source = builder(postgres, table, slot).build()
    reader = opened(source)
    reader.read(1)
    before = confirmed()
    postgres.execute(f"INSERT INTO {table} VALUES (1, 'a')")
    read(reader, 1)
    old = reader.snapshot_splits()
    postgres.execute(f"INSERT INTO {table} VALUES (2, 'b')")
    read(reader, 1)
    deadline = time.monotonic() + PATIENCE
    while reader.snapshot_splits()[0].position["returned"]:
        reader.read(1)
        assert time.monotonic() < deadline
    reader.begin_checkpoint(1)
    assert confirmed() == before
    reader.notify_checkpoint_complete(1)
    while confirmed() == before:
        reader.read(1)
        assert time.monotonic() < deadline
    reader.close()
    # A checkpoint from before cannot be restored: its changes are gone.
    reader = opened(source, old)
    with pytest.raises(ReplicationSlotMovedError, match="has moved on"):
        read(reader, 1)
    drop(postgres, slot)
    reader = opened(source, old)
    with pytest.raises(ReplicationSlotMovedError, match="does not exist"):
        read(reader, 1)


def test_a_new_connection_does_not_release_the_log(postgres: PostgresServer, slot: str) -> None:
    """It begins at the reader's position, which may be past the last checkpoint."""
    table = postgres.table("id INT PRIMARY KEY, word TEXT")
    source = builder(postgres, table, slot).build()
    reader = opened(source)
    assert reader.read(1) == []
    postgres.execute(f"INSERT INTO {table} VALUES (1, 'a')")
    read(reader, 1)
    checkpoint = reader.snapshot_splits()
    for number in (2, 3, 4):
        postgres.execute(f"INSERT INTO {table} VALUES (%s, 'a')", number)
        read(reader, 1)
        if number == 2:
            postgres.execute(
                "SELECT pg_terminate_backend(active_pid, 60000) FROM pg_replication_slots "
                "WHERE slot_name = %s",
                slot,
            )
    reader.close()
    reader = opened(source, checkpoint)
    assert read(reader, 3) == ["+I[2, 'a']", "+I[3, 'a']", "+I[4, 'a']"]
    reader.close()


def test_truncate_is_an_error(postgres: PostgresServer, slot: str) -> None:
    table = postgres.table("id INT PRIMARY KEY, word TEXT")
    reader = opened(builder(postgres, table, slot).build())
    reader.read(1)
    postgres.execute(f"INSERT INTO {table} VALUES (1, 'a')")
    postgres.execute(f"TRUNCATE {table}")
    with pytest.raises(ChangeStreamError, match="truncated"):
        read(reader, 2)
    reader.close()


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ("id INT, word TEXT", "must have its primary key"),
        ("id INT, word TEXT, more INT PRIMARY KEY", r"primary key, which is \['more'\]"),
        ("id BYTEA PRIMARY KEY, word TEXT", "has the type bytea"),
    ],
)
def test_tables_that_cannot_be_followed(
    postgres: PostgresServer, slot: str, columns: str, text: str
) -> None:
    reader = opened(builder(postgres, postgres.table(columns), slot).build())
    with pytest.raises(ChangeStreamError, match=text):
        reader.read(1)
    reader.close()


def test_a_column_that_is_dropped(postgres: PostgresServer, slot: str) -> None:
    table = postgres.table("id INT PRIMARY KEY, word TEXT")
    reader = opened(builder(postgres, table, slot).build())
    reader.read(1)
    postgres.execute(f"ALTER TABLE {table} DROP word")
    postgres.execute(f"INSERT INTO {table} VALUES (1)")
    with pytest.raises(ChangeStreamError, match="has no column word, but id"):
        read(reader, 1)
    reader.close()


@pytest.mark.slow
def test_a_server_without_logical_decoding() -> None:
    with running_postgres(wal_level="replica") as server:
        source = builder(server, server.table("id INT PRIMARY KEY, word TEXT"), "slot").build()
        with pytest.raises(ChangeStreamError, match="Set wal_level = logical"):
            source.create_enumerator(1).discover_splits()


# Under load


class Load:
    """Changes rows in several connections until it is stopped."""

    def __init__(self, server: PostgresServer, table: str, seed: int) -> None:
        self._server = server
        self._table = table
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(Random(seed * 10 + number),))
            for number in range(3)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _run(self, random: Random) -> None:
        import psycopg

        while not self._stopped.is_set():
            # The server may be killed.
            with suppress(psycopg.Error), self._server.connect(autocommit=False) as connection:
                while not self._stopped.is_set():
                    self._transaction(connection, random)
            time.sleep(0.05)

    def _transaction(self, connection: Any, random: Random) -> None:
        import psycopg

        try:
            for _ in range(random.randint(1, 4)):
                key, other = random.randint(0, 60), random.randint(0, 60)
                word = f"word {random.random()}"
                statement, parameters = random.choice(
                    [
                        ("INSERT INTO {} VALUES (%s, %s) ON CONFLICT DO NOTHING", (key, word)),
                        ("UPDATE {} SET word = %s WHERE id = %s", (word, key)),
                        ("DELETE FROM {} WHERE id = %s", (key,)),
                        ("UPDATE {} SET id = %s, word = %s WHERE id = %s", (other, word, key)),
                    ]
                )
                connection.execute(statement.format(self._table), parameters)
                if random.random() < 0.1:
                    time.sleep(0.01)
            time.sleep(0.01)
            if random.random() < 0.2:
                connection.rollback()
            else:
                connection.commit()
        except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
            connection.rollback()


def apply(rows: list[Row]) -> dict[int, str]:
    """The table that changes describe. Changes that do not fit are errors."""
    table: dict[int, str] = {}
    for row in rows:
        kind = row.get_row_kind()
        if kind is RowKind.INSERT:
            assert row.id not in table, f"{row} is there already"
            table[row.id] = row.word
        elif kind is RowKind.UPDATE_AFTER:
            assert row.id in table, f"{row} is missing"
            table[row.id] = row.word
        elif kind is RowKind.DELETE:
            assert row.id in table, f"{row} is missing"
            del table[row.id]
    return table


SETTINGS = Configuration(RESTARTS).set_string("restart-strategy.fixed-delay.attempts", "1000")


@pytest.mark.parametrize(
    ("execution", "seed", "steps"),
    [
        ("real-time", 21, 12),
        *(
            pytest.param(execution, seed, 40, marks=pytest.mark.slow)
            for execution in ("micro-batch", "real-time")
            for seed in range(10, 20)
        ),
    ],
)
def test_rows_that_change_while_everything_is_killed(
    postgres: PostgresServer, slot: str, seed: int, steps: int, execution: str, tmp_path: Any
) -> None:
    """Each change once, in order: in the end the changes describe the table."""
    from firesteel.testing import ListSink

    server = postgres
    table = server.table("id INT PRIMARY KEY, word TEXT")
    server.execute(f"INSERT INTO {table} SELECT n, 'old' FROM generate_series(0, 60, 2) AS n")
    source = builder(server, table, slot).build()
    sink = ListSink(tmp_path / "changes")

    def program(env: Any) -> None:
        changes = env.from_source(source, WatermarkStrategy.no_watermarks(), "changes")
        changes.sink_to(sink)

    load = Load(server, table, seed)
    try:
        history = History(program, server, execution, seed)
        for action in ("epoch", "checkpoint", "epoch", "server", "kill"):
            history.act(action)
        for _ in range(steps - 5):
            history.act()
    finally:
        load.stop()
    server.execute(f"INSERT INTO {table} VALUES (1000, 'the end')")
    deadline = time.monotonic() + 2 * PATIENCE
    while not any(row.id == 1000 for row in sink.values()):
        for _ in range(5):
            history.harness.run_epoch()
        history.harness.checkpoint()
        assert time.monotonic() < deadline
    assert sorted(apply(sink.values()).items()) == sorted(server.rows(table))
    history.harness.cancel()
    history.harness.run()


class History:
    """A job whose driver, tasks and server are killed in random order."""

    def __init__(
        self, program: Callable[[Any], None], server: PostgresServer, execution: str, seed: int
    ) -> None:
        self.program = program
        self.server = server
        self.random = Random(seed)
        self.arguments: dict[str, Any] = {
            "records_per_epoch": (3, 70, 500),
            "configuration": Configuration(SETTINGS).set_string("firesteel.execution", execution),
            "checkpoint_every": 0,
            "seed": seed,
        }
        # The directory with the checkpoints of the last driver that has completed one.
        self.origin: str | None = None
        self.harness = JobHarness(program, **self.arguments)

    def act(self, action: str | None = None) -> None:
        actions = ["epoch"] * 6 + ["checkpoint"] * 4 + ["lose", "crash", "kill", "server"]
        action = action or self.random.choice(actions)
        faults = None
        if action == "checkpoint":
            self.harness.request_checkpoint()
        elif action == "crash":
            self.harness.crash()
        elif action == "server":
            self.server.restart()
        elif action == "kill":
            self._kill()
        elif action == "lose":
            fault = self.random.choice([Fault.LOSE_HOST, Fault.LOSE_HOST_LATE])
            faults = dict.fromkeys(self.harness.places(), fault)
        self.harness.run_epoch(faults)

    def _kill(self) -> None:
        self.harness.kill()
        own = self.harness.checkpoint_directory()
        if any(own.glob("chk-*/_metadata")):
            self.origin = str(own.parent)
        if self.origin is None:
            self.harness = JobHarness(self.program, **self.arguments)
        else:
            self.harness = self.harness.resume(self.origin)
