"""JdbcSink and JdbcSource on a real MariaDB, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from firesteel.common import Configuration, Row, RowKind, Types
from firesteel.connectors.jdbc.errors import JdbcConnectionError, JdbcWriteError
from firesteel.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
    JdbcSource,
)
from firesteel.errors import ConfigurationError, InvalidProgramError
from firesteel.testing import JobHarness, check_sink, check_source
from tests.connectors.jdbc.test_sink import ALL
from tests.recovery.jobs import RESTARTS
from tests.servers.mariadb import MariadbServer, running_mariadb

pytestmark = pytest.mark.slow

PAIR = Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()])
ROWS = [Row(id=n, word=f"word {n}") for n in range(30)]


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbServer]:
    with running_mariadb() as server:
        yield server


def at(server: MariadbServer, **login: str) -> JdbcConnectionOptions:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(server.url)
    if login:
        builder.with_url(server.url.partition("?")[0])
        builder.with_user_name(login["user"]).with_password(login["password"])
    return builder.build()


def test_the_source(mariadb: MariadbServer) -> None:
    table = mariadb.table("id INT PRIMARY KEY, word TEXT")
    values = ", ".join(f"({row.id}, '{row.word}')" for row in ROWS)
    mariadb.execute(f"INSERT INTO {table} VALUES {values}")
    source = (
        JdbcSource.builder()
        .set_connection_options(at(mariadb))
        .set_table(table)
        .set_type_info(PAIR)
        .set_split_column("id")
        .set_fetch_size(4)
        .build()
    )
    check_source(source, ROWS)


@pytest.mark.parametrize("is_changelog", [False, True])
def test_the_sink(mariadb: MariadbServer, is_changelog: bool) -> None:
    batches = JdbcExecutionOptions.builder().with_batch_size(4).build()

    def create() -> tuple[JdbcSink, Callable[[], list[Any]]]:
        table = mariadb.table("id INT PRIMARY KEY, word TEXT")
        if is_changelog:
            sink = JdbcSink.changelog_sink(table, PAIR, ["id"], at(mariadb), batches)
        else:
            insert = (
                f"INSERT INTO {table} VALUES (?, ?) ON DUPLICATE KEY UPDATE word = VALUES(word)"
            )
            sink = JdbcSink.sink(insert, PAIR, at(mariadb), batches)
        return sink, lambda: [Row(id=n, word=word) for n, word in mariadb.rows(table)]

    check_sink(create, ROWS, exactly_once=False)


def test_types(mariadb: MariadbServer) -> None:
    columns = [f"`{one.split()[0]}` {one.partition(' ')[2]}" for one in ALL]
    types = ", ".join(columns).replace("TIMESTAMP", "DATETIME(6)").replace("TIME,", "TIME(6),")
    table = mariadb.table(types)
    type_info = Types.ROW_NAMED([one.split()[0] for one in ALL], [one[0] for one in ALL.values()])
    row = Row(*(one[1] for one in ALL.values()))
    sql = f"INSERT INTO {table} VALUES ({', '.join('?' * len(ALL))})"
    sink = JdbcSink.sink(sql, type_info, at(mariadb))
    JobHarness(lambda env: env.from_collection([row], type_info).sink_to(sink)).run()
    found = mariadb.execute(
        f"SELECT flag, small, `long`, `float`, exact, text, day, CAST(clock AS CHAR), moment, "
        f"missing FROM {table}"
    )
    expected = [one[1] for one in ALL.values()]
    expected[7] = f"{expected[7]}.000000"
    assert list(found[0]) == expected


def test_changes_become_the_content_of_a_table(mariadb: MariadbServer) -> None:
    table = mariadb.table("id INT PRIMARY KEY, word TEXT")
    changes = [
        Row.of_kind(RowKind.INSERT, 1, "a"),
        Row.of_kind(RowKind.INSERT, 2, "b"),
        Row.of_kind(RowKind.UPDATE_BEFORE, 1, "a"),
        Row.of_kind(RowKind.UPDATE_AFTER, 1, "c"),
        Row.of_kind(RowKind.DELETE, 2, "b"),
    ]
    sink = JdbcSink.changelog_sink(table, PAIR, ["id"], at(mariadb))
    JobHarness(lambda env: env.from_collection(changes, PAIR).sink_to(sink)).run()
    assert mariadb.rows(table) == [(1, "c")]


def test_a_server_that_is_killed(mariadb: MariadbServer) -> None:
    table = mariadb.table("id INT PRIMARY KEY, word TEXT")
    insert = f"INSERT INTO {table} VALUES (?, ?) ON DUPLICATE KEY UPDATE word = VALUES(word)"
    batches = JdbcExecutionOptions.builder().with_batch_size(4).build()
    sink = JdbcSink.sink(insert, PAIR, at(mariadb), batches)
    harness = JobHarness(
        lambda env: env.from_collection(ROWS, PAIR).sink_to(sink),
        records_per_epoch=3,
        checkpoint_every=2,
        configuration=Configuration(RESTARTS),
    )
    for number in range(100):
        if number in (2, 5):
            mariadb.restart()
        if not harness.run_epoch():
            break
    harness.run()
    assert mariadb.rows(table) == sorted(((row.id, row.word) for row in ROWS), key=repr)


def test_errors(mariadb: MariadbServer) -> None:
    def write(sql: str, at: JdbcConnectionOptions) -> None:
        once = JdbcExecutionOptions.builder().with_max_retries(0).build()
        sink = JdbcSink.sink(sql, PAIR, at, once)
        JobHarness(lambda env: env.from_collection([ROWS[0]], PAIR).sink_to(sink)).run()

    with pytest.raises(JdbcConnectionError, match=r"mariadb.*JdbcConnectionOptions"):
        write("INSERT INTO t VALUES (?, ?)", at(mariadb, user="ann", password="wrong"))
    with pytest.raises(JdbcWriteError, match="nowhere"):
        write("INSERT INTO nowhere VALUES (?, ?)", at(mariadb))
    options = JdbcExactlyOnceOptions.builder().with_transaction_id_prefix("p").build()
    with pytest.raises((ConfigurationError, InvalidProgramError), match="PostgreSQL"):
        JdbcSink.exactly_once_sink(
            "INSERT INTO t VALUES (?, ?)",
            PAIR,
            at(mariadb),
            JdbcExecutionOptions.builder().build(),
            options,
        )
