"""JdbcSink on real databases, without Spark: statements, types, batches, guarantees, errors."""

from __future__ import annotations

import datetime as dt
import pickle
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Row, RowKind, Types
from firesteel.connectors.jdbc.errors import JdbcTransactionLostError, JdbcWriteError
from firesteel.datastream.connectors.base import SinkWriter, WriteContext, WriterContext
from firesteel.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from firesteel.errors import InvalidProgramError, LeadershipLostError
from firesteel.testing import JobHarness
from tests.servers.postgres import PostgresServer
from tests.servers.sqlite import SqliteServer

NOW = WriteContext()
PAIR = Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()])
INSERT = "INSERT INTO {} (id, word) VALUES (?, ?)"

Server = PostgresServer | SqliteServer


def at(server: Server) -> JdbcConnectionOptions:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(server.url)
    return builder.with_connection_check_timeout_seconds(20).build()


def named(prefix: str) -> JdbcExactlyOnceOptions:
    return JdbcExactlyOnceOptions.builder().with_transaction_id_prefix(prefix).build()


def run(program: Callable[[Any], Any], **options: Any) -> JobHarness:
    harness = JobHarness(program, **options)
    harness.run()
    return harness


def place(subtask: int = 0) -> WriterContext:
    return WriterContext(subtask, 2, "job")


# At least once


def test_a_job_writes_all_its_rows(server: Server) -> None:
    table = server.table("id INT, word TEXT")
    rows = [(number, f"word {number}") for number in range(100)]
    batches = JdbcExecutionOptions.builder().with_batch_size(7).build()
    sink = JdbcSink.sink(INSERT.format(table), PAIR, at(server), batches)
    run(lambda env: env.from_collection(rows, PAIR).add_sink(sink), parallelism=2)
    assert server.rows(table) == sorted(rows, key=repr)


def test_upserts_are_the_sql_of_the_user(server: Server) -> None:
    table = server.table("id INT PRIMARY KEY, word TEXT")
    sql = INSERT.format(table) + " ON CONFLICT (id) DO UPDATE SET word = excluded.word || '?'"
    sink = JdbcSink.sink(sql, PAIR, at(server))
    rows = [(1, "a"), (2, "b"), (1, "c")]
    run(lambda env: env.from_collection(rows, PAIR).sink_to(sink))
    assert server.rows(table) == [(1, "c?"), (2, "b")]


ALL = {
    "flag BOOLEAN": (Types.BOOLEAN(), True, 1),
    "small SMALLINT": (Types.SHORT(), 7, 7),
    "long BIGINT": (Types.LONG(), 2**40, 2**40),
    "float DOUBLE PRECISION": (Types.DOUBLE(), 1.5, 1.5),
    "exact NUMERIC(10, 2)": (Types.BIG_DEC(), Decimal("1.25"), 1.25),
    "text TEXT": (Types.STRING(), "né%s?", "né%s?"),
    "day DATE": (Types.SQL_DATE(), dt.date(2024, 3, 9), "2024-03-09"),
    "clock TIME": (Types.SQL_TIME(), dt.time(1, 2, 3), "01:02:03"),
    "moment TIMESTAMP": (
        Types.SQL_TIMESTAMP(),
        dt.datetime(2024, 3, 9, 1, 2, 3, 500_000),  # noqa: DTZ001 - the column has no zone
        "2024-03-09 01:02:03.500000",
    ),
    "missing TEXT": (Types.STRING(), None, None),
}


def test_types(server: Server) -> None:
    table = server.table(", ".join(ALL))
    type_info = Types.ROW_NAMED([one.split()[0] for one in ALL], [one[0] for one in ALL.values()])
    row = Row(*(one[1] for one in ALL.values()))
    sql = f"INSERT INTO {table} VALUES ({', '.join('?' * len(ALL))})"
    sink = JdbcSink.sink(sql, type_info, at(server))
    run(lambda env: env.from_collection([row], type_info).sink_to(sink))
    [found] = server.execute(f"SELECT * FROM {table}")
    in_sqlite = isinstance(server, SqliteServer)
    assert list(found) == [one[2 if in_sqlite else 1] for one in ALL.values()]


def test_arrays_and_bytes(postgres: PostgresServer) -> None:
    table = postgres.table("numbers INT[], raw BYTEA")
    type_info = Types.ROW([Types.LIST(Types.INT()), Types.PRIMITIVE_ARRAY(Types.BYTE())])
    sink = JdbcSink.sink(f"INSERT INTO {table} VALUES (?, ?)", type_info, at(postgres))
    writer = sink.create_writer(place())
    writer.write(Row([1, 2], b"\xff\0"), NOW)
    writer.flush(end_of_input=True)
    writer.close()
    assert postgres.rows(table) == [([1, 2], b"\xff\0")]


def test_fields_are_found_by_name(server: Server) -> None:
    table = server.table("id INT, word TEXT")
    sink = JdbcSink.sink(INSERT.format(table), PAIR, at(server))
    writer = pickle.loads(pickle.dumps(sink)).create_writer(place())
    writer.write(Row(word="a", id=1), NOW)
    writer.write({"word": "b", "id": 2}, NOW)
    writer.flush(end_of_input=True)
    writer.close()
    assert server.rows(table) == [(1, "a"), (2, "b")]


def test_batches_by_size_and_by_time(server: Server) -> None:
    table = server.table("id INT, word TEXT")
    builder = JdbcExecutionOptions.builder().with_batch_size(3)
    sink = JdbcSink.sink(INSERT.format(table), PAIR, at(server), builder.build())
    writer = sink.create_writer(place())
    assert writer.next_flush_delay() is None
    for number in range(4):
        writer.write((number, "a"), NOW)
    assert len(server.rows(table)) == 3
    writer.close()

    timed = builder.with_batch_interval_ms(20).build()
    writer = JdbcSink.sink(INSERT.format(table), PAIR, at(server), timed).create_writer(place())
    assert writer.next_flush_delay() == 0.02
    writer.write((10, "a"), NOW)
    assert len(server.rows(table)) == 3
    time.sleep(0.03)
    writer.write((11, "a"), NOW)
    assert len(server.rows(table)) == 5
    writer.close()


def test_a_killed_server_is_waited_for() -> None:
    from tests.servers.postgres import running_postgres

    with running_postgres() as server:
        table = server.table("id INT, word TEXT")
        writer = JdbcSink.sink(INSERT.format(table), PAIR, at(server)).create_writer(place())
        writer.write((1, "a"), NOW)
        writer.flush(end_of_input=False)
        server.restart()
        writer.write((2, "b"), NOW)
        writer.flush(end_of_input=False)
        writer.close()
        assert server.rows(table) == [(1, "a"), (2, "b")]


# Errors


def test_the_number_of_placeholders(tmp_path: Path) -> None:
    with pytest.raises(InvalidProgramError, match="has 1 placeholders, but the rows have 2"):
        JdbcSink.sink("INSERT INTO t VALUES (?, '?')", PAIR, at(SqliteServer(tmp_path)))


def test_the_row_that_the_database_does_not_take_is_named(server: Server) -> None:
    table = server.table("id INT PRIMARY KEY, word TEXT CHECK (word <> 'bad')")
    sink = JdbcSink.sink(INSERT.format(table), PAIR, at(server))
    rows = [(1, "good"), (2, "bad"), (3, "good")]
    with pytest.raises(JdbcWriteError, match=r"parameters \(2, 'bad'\)") as caught:
        run(lambda env: env.from_collection(rows, PAIR).sink_to(sink))
    assert "constraint" in str(caught.value).lower()
    assert server.rows(table) == []


def test_a_table_that_does_not_exist(server: Server) -> None:
    sink = JdbcSink.sink(INSERT.format("no_such_table"), PAIR, at(server))
    with pytest.raises(JdbcWriteError, match="no_such_table"):
        run(lambda env: env.from_collection([(1, "a")], PAIR).sink_to(sink))


def test_records_that_are_no_rows(tmp_path: Path) -> None:
    writer = JdbcSink.sink(INSERT.format("t"), PAIR, at(SqliteServer(tmp_path))).create_writer(
        place()
    )
    with pytest.raises(TypeError, match=r"rows with the fields \['id', 'word'\], got 7"):
        writer.write(7, NOW)
    with pytest.raises(ValueError, match=r"got \(1,\)"):
        writer.write((1,), NOW)


# Exactly once


def exactly_once(postgres: PostgresServer, table: str, prefix: str | None = None) -> JdbcSink:
    sql = INSERT.format(table)
    return JdbcSink.exactly_once_sink(sql, PAIR, at(postgres), None, named(prefix or table))


def prepared_by(sink: JdbcSink, row: Any, subtask: int = 0) -> list[Any]:
    """Write a row and prepare it, then lose the writer."""
    writer = sink.create_writer(place(subtask))
    writer.write(row, NOW)
    writer.begin_checkpoint(1)
    committables = writer.prepare_commit(end_of_input=False)
    writer.close()
    return committables


def commit(sink: JdbcSink, committables: list[Any]) -> None:
    committer = sink.create_committer()
    assert committer is not None
    committer.commit(committables)
    committer.close()


def test_rows_are_visible_when_they_are_committed_and_only_once(postgres: PostgresServer) -> None:
    table = postgres.table("id INT, word TEXT")
    sink = exactly_once(postgres, table)
    writer = sink.create_writer(place())
    assert writer.prepare_commit(end_of_input=False) == []
    writer.write((1, "a"), NOW)
    assert writer.has_open_transaction()
    writer.flush(end_of_input=False)
    writer.begin_checkpoint(1)
    committables = writer.prepare_commit(end_of_input=False)
    assert not writer.has_open_transaction()
    assert len(committables) == 1
    assert postgres.rows(table) == []
    for _ in range(3):
        commit(sink, committables)
        assert postgres.rows(table) == [(1, "a")]
    writer.close()
    assert postgres.prepared(table) == []


def test_a_restored_job_commits_its_own_and_rolls_back_the_rest(postgres: PostgresServer) -> None:
    table = postgres.table("id INT, word TEXT")
    sink = exactly_once(postgres, table)
    contained = prepared_by(sink, (1, "contained"))
    prepared_by(sink, (2, "not contained"), subtask=1)
    neighbor = prepared_by(exactly_once(postgres, table, f"{table}/0"), (3, "neighbor"))
    sink.recover(contained)
    assert postgres.rows(table) == [(1, "contained")]
    assert postgres.prepared(table) == [neighbor[0]["gid"]]
    sink.recover(contained)
    assert postgres.rows(table) == [(1, "contained")]
    commit(exactly_once(postgres, table, f"{table}/0"), neighbor)


def test_recovery_that_was_frozen_leaves_the_work_of_the_next_master(server: Server) -> None:
    """The process was frozen after it had listed that work, until the next master began."""
    table = server.table("id INT PRIMARY KEY, word TEXT")
    sink = JdbcSink.changelog_sink(table, PAIR, ["id"], at(server), None, named(table))
    sink.recover([])
    check_frozen_recovery(server, table, sink)


def test_recovery_that_was_frozen_leaves_prepared_transactions(postgres: PostgresServer) -> None:
    table = postgres.table("id INT, word TEXT")
    check_frozen_recovery(postgres, table, exactly_once(postgres, table))


def check_frozen_recovery(server: Server, table: str, sink: JdbcSink) -> None:
    prepared_by(sink, Row(1, "lost"))
    prepared: list[Any] = []
    sink.recover_in_term([], lambda: prepared.extend(prepared_by(sink, Row(2, "next"), subtask=1)))

    def lose() -> None:
        raise LeadershipLostError(1, "term 2 has begun")

    with pytest.raises(LeadershipLostError):
        sink.recover_in_term([], lose)
    # The first check of prepared transactions comes before the list.
    commit(sink, prepared[-1:])
    assert server.rows(table) == [(2, "next")]
    sink.recover([])


def test_a_transaction_that_was_rolled_back_is_an_error(postgres: PostgresServer) -> None:
    table = postgres.table("id INT, word TEXT")
    sink = exactly_once(postgres, table)
    committables = prepared_by(sink, (1, "a"))
    postgres.execute(f"ROLLBACK PREPARED '{committables[0]['gid']}'")
    with pytest.raises(JdbcTransactionLostError, match="was rolled back"):
        commit(sink, committables)


def test_a_prepared_transaction_survives_the_server() -> None:
    from tests.servers.postgres import running_postgres

    with running_postgres() as server:
        table = server.table("id INT, word TEXT")
        sink = exactly_once(server, table)
        committables = prepared_by(sink, (1, "a"))
        server.restart()
        committer = sink.create_committer()
        assert committer is not None
        committer.commit(committables)
        server.restart()
        # In the connection that the server has lost.
        committer.commit(committables)
        committer.close()
        assert server.rows(table) == [(1, "a")]


def test_a_row_of_a_prepared_transaction_can_be_updated_after_its_commit(
    postgres: PostgresServer,
) -> None:
    table = postgres.table("id INT PRIMARY KEY, word TEXT")
    sql = INSERT.format(table) + " ON CONFLICT (id) DO UPDATE SET word = excluded.word"
    sink = JdbcSink.exactly_once_sink(sql, PAIR, at(postgres), None, named(table))
    writer = sink.create_writer(place())
    writer.write((1, "a"), NOW)
    writer.begin_checkpoint(1)
    first = writer.prepare_commit(end_of_input=False)
    # These wait in memory, not for the lock of the row.
    writer.write((1, "b"), NOW)
    writer.flush(end_of_input=False)
    assert writer.has_open_transaction()
    commit(sink, first)
    writer.notify_checkpoint_complete(1)
    writer.flush(end_of_input=False)
    writer.begin_checkpoint(2)
    commit(sink, writer.prepare_commit(end_of_input=False))
    writer.close()
    assert postgres.rows(table) == [(1, "b")]


def test_a_lock_of_a_prepared_transaction_is_explained(postgres: PostgresServer) -> None:
    table = postgres.table("id INT PRIMARY KEY, word TEXT")
    options = JdbcExactlyOnceOptions.builder().with_transaction_id_prefix(table)
    options = options.with_lock_timeout_seconds(1)
    sql = INSERT.format(table) + " ON CONFLICT (id) DO UPDATE SET word = excluded.word"
    sink = JdbcSink.exactly_once_sink(sql, PAIR, at(postgres), None, options.build())
    committables = prepared_by(sink, (1, "a"))
    writer = sink.create_writer(place(1))
    writer.write((1, "b"), NOW)
    with pytest.raises(JdbcWriteError, match="key the stream by the primary key"):
        writer.flush(end_of_input=False)
    writer.close()
    commit(sink, committables)


def test_a_server_without_prepared_transactions() -> None:
    from tests.servers.postgres import running_postgres

    with running_postgres(max_prepared_transactions=0) as server:
        sink = exactly_once(server, server.table("id INT, word TEXT"))
        with pytest.raises(JdbcWriteError, match="max_prepared_transactions > 0"):
            prepared_by(sink, (1, "a"))


def test_options_of_exactly_once(postgres: PostgresServer, tmp_path: Path) -> None:
    with pytest.raises(InvalidProgramError, match="needs JdbcExactlyOnceOptions"):
        JdbcSink.exactly_once_sink(INSERT.format("t"), PAIR, at(postgres))
    sqlite = at(SqliteServer(tmp_path))
    with pytest.raises(InvalidProgramError, match="prepared transactions of PostgreSQL"):
        JdbcSink.exactly_once_sink(INSERT.format("t"), PAIR, sqlite, None, named("a"))
    with pytest.raises(ValueError, match="1 to 120 bytes"):
        named("é" * 61)


# Changelogs

CHANGES = [
    Row.of_kind(RowKind.INSERT, 1, "a"),
    Row.of_kind(RowKind.INSERT, 2, "b"),
    Row.of_kind(RowKind.INSERT, 3, "c"),
    Row.of_kind(RowKind.UPDATE_BEFORE, 1, "a"),
    Row.of_kind(RowKind.UPDATE_AFTER, 1, "A"),
    Row.of_kind(RowKind.DELETE, 2, "b"),
    Row.of_kind(RowKind.UPDATE_BEFORE, 3, "c"),
    Row.of_kind(RowKind.UPDATE_AFTER, 4, "c moved"),
    Row.of_kind(RowKind.DELETE, 4, "c moved"),
    Row.of_kind(RowKind.INSERT, 4, "again"),
]


@pytest.mark.parametrize("batch", [1, 3, 100])
@pytest.mark.parametrize("exact", [False, True])
def test_the_table_has_the_sum_of_the_changes(server: Server, batch: int, exact: bool) -> None:
    table = server.table("id INT PRIMARY KEY, word TEXT")
    execution = JdbcExecutionOptions.builder().with_batch_size(batch).build()
    options = named(table) if exact else None
    sink = JdbcSink.changelog_sink(table, PAIR, ["id"], at(server), execution, options)
    run(
        lambda env: env.from_collection(CHANGES, PAIR).sink_to(sink),
        records_per_epoch=2,
        checkpoint_every=2,
    )
    assert server.rows(table) == [(1, "A"), (4, "again")]
    if exact:
        assert server.rows(f"{table}_firesteel_journal") == []


def test_a_table_that_is_only_a_key(server: Server) -> None:
    table = server.table('id INT, "the word" TEXT, PRIMARY KEY (id, "the word")')
    type_info = Types.ROW_NAMED(["id", "the word"], [Types.INT(), Types.STRING()])
    keys = ["the word", "id"]
    for options in (None, named(table)):
        sink = JdbcSink.changelog_sink(table, type_info, keys, at(server), None, options)
        rows = [Row(1, "a"), Row(1, "b"), Row.of_kind(RowKind.DELETE, 1, "b")]
        run(lambda env: env.from_collection(rows, type_info).sink_to(sink))  # noqa: B023 - at once
        assert server.rows(table) == [(1, "a")]


def test_a_journal_keeps_changes_until_the_commit(server: Server) -> None:
    table = server.table("id INT PRIMARY KEY, word TEXT")
    sink = JdbcSink.changelog_sink(table, PAIR, ["id"], at(server), None, named(table))
    sink.recover([])
    writer = sink.create_writer(place())
    writer.write(CHANGES[0], NOW)
    writer.flush(end_of_input=False)
    # The task is lost after this epoch, and its writer continues.
    state = writer.snapshot_state()
    writer.write(CHANGES[1], NOW)
    writer.flush(end_of_input=False)
    writer.close()
    writer = sink.create_writer(place(), state)
    writer.write(Row(3, "retried"), NOW)
    committables = writer.prepare_commit(end_of_input=False)
    assert writer.snapshot_state() == []
    writer.close()
    assert server.rows(table) == []
    for _ in range(2):
        commit(sink, committables)
        assert server.rows(table) == [(1, "a"), (3, "retried")]
    # What the lost writer has left is gone, too. Another one is lost.
    assert server.rows(f"{table}_firesteel_journal") == []
    writer = sink.create_writer(place(), state)
    writer.write(Row(5, "lost"), NOW)
    writer.flush(end_of_input=False)
    writer.close()
    # Another sink of the table has a batch in the same journal.
    neighbor = JdbcSink.changelog_sink(table, PAIR, ["id"], at(server), None, named("neighbor"))
    other = neighbor.create_writer(place())
    other.write(Row(4, "d"), NOW)
    theirs = other.prepare_commit(end_of_input=False)
    other.close()
    sink.recover(committables)
    commit(neighbor, theirs)
    assert server.rows(table) == [(1, "a"), (3, "retried"), (4, "d")]
    assert server.rows(f"{table}_firesteel_journal") == []


def test_a_commit_drops_what_lost_writers_of_its_subtask_have_left(server: Server) -> None:
    table = server.table("id INT PRIMARY KEY, word TEXT")
    journal = f"{table}_firesteel_journal"
    sink = JdbcSink.changelog_sink(table, PAIR, ["id"], at(server), None, named(table))
    neighbor = JdbcSink.changelog_sink(table, PAIR, ["id"], at(server), None, named("neighbor"))
    sink.recover([])

    def write(row: Row, subtask: int = 0, of: JdbcSink = sink) -> SinkWriter:
        writer = of.create_writer(place(subtask))
        writer.write(row, NOW)
        writer.flush(end_of_input=False)
        return writer

    pending = write(Row(1, "pending")).prepare_commit(end_of_input=False)
    write(Row(2, "lost"))
    write(Row(3, "of another subtask"), 1)
    write(Row(4, "of another sink"), of=neighbor)
    writer = write(Row(5, "new"))
    committables = writer.prepare_commit(end_of_input=False)
    # Nothing is dropped before the checkpoint is complete: the task of this writer may be lost.
    assert len(server.rows(journal)) == 5
    commit(sink, [*pending, *committables])
    assert server.rows(table) == [(1, "pending"), (5, "new")]
    left = sorted(row[1] for row in server.rows(journal))
    assert left == ["of another sink", "of another subtask"]
    # A zombie writes late. The last checkpoint finds its batch.
    write(Row(6, "late"))
    writer.write(Row(7, "last"), NOW)
    commit(sink, writer.prepare_commit(end_of_input=True))
    assert server.rows(table) == [(1, "pending"), (5, "new"), (7, "last")]
    assert len(server.rows(journal)) == 2


def test_two_committers_of_the_same_batch(postgres: PostgresServer) -> None:
    """A zombie commits again while a later batch is applied: it must not bring old rows back."""
    table = postgres.table("id INT PRIMARY KEY, word TEXT")
    sink = JdbcSink.changelog_sink(table, PAIR, ["id"], at(postgres), None, named(table))
    sink.recover([])
    writer = sink.create_writer(place())
    writer.write(Row(1, "old"), NOW)
    first = writer.prepare_commit(end_of_input=False)
    with postgres.connect(autocommit=False) as connection:
        connection.execute(f"SELECT * FROM {table}_firesteel_journal FOR UPDATE")
        import threading

        zombies = [threading.Thread(target=commit, args=(sink, first)) for _ in range(2)]
        for zombie in zombies:
            zombie.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while postgres.execute(waiting) != [(2,)]:
            time.sleep(0.01)
    for zombie in zombies:
        zombie.join()
    writer.write(Row(1, "new"), NOW)
    commit(sink, writer.prepare_commit(end_of_input=False))
    commit(sink, first)
    writer.close()
    assert postgres.rows(table) == [(1, "new")]


def test_a_primary_key_must_be_a_field(server: Server) -> None:
    with pytest.raises(InvalidProgramError, match=r"\['number'\] must consist of fields"):
        JdbcSink.changelog_sink("t", PAIR, ["number"], at(server))
