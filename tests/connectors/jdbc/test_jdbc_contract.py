"""The test kit for connectors on PostgreSQL: sources and sinks keep their contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firesteel.common import Row, Types
from firesteel.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
    JdbcSource,
)
from firesteel.testing import check_sink, check_source
from tests.servers.postgres import PostgresServer

NUMBER = Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()])
ROWS = [Row(id=n, word=f"word {n}") for n in range(30)]
# More seeds run in `make test-all`.
SEEDS = [pytest.param([1]), pytest.param(range(2, 10), marks=pytest.mark.slow)]


def connection(server: PostgresServer) -> JdbcConnectionOptions:
    return JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(server.url).build()


@pytest.mark.parametrize("seeds", SEEDS)
def test_the_source(postgres: PostgresServer, seeds: Any) -> None:
    table = postgres.table("id INT PRIMARY KEY, word TEXT")
    postgres.execute(f"INSERT INTO {table} SELECT n, 'word ' || n FROM generate_series(0, 29) AS n")
    source = (
        JdbcSource.builder()
        .set_connection_options(connection(postgres))
        .set_table(table)
        .set_type_info(NUMBER)
        .set_split_column("id")
        .set_fetch_size(4)
        .build()
    )
    check_source(source, ROWS, seeds=seeds)


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("kind", ["at least once", "prepared transactions", "changelog"])
def test_the_sink(postgres: PostgresServer, kind: str, seeds: Any) -> None:
    batches = JdbcExecutionOptions.builder().with_batch_size(4).build()

    def create() -> tuple[JdbcSink, Callable[[], list[Any]]]:
        key = "PRIMARY KEY" if kind == "changelog" else ""
        table = postgres.table(f"id INT {key}, word TEXT")
        at = connection(postgres)
        once = JdbcExactlyOnceOptions.builder().with_transaction_id_prefix(table).build()
        insert = f"INSERT INTO {table} VALUES (?, ?)"
        sink: JdbcSink
        if kind == "changelog":
            sink = JdbcSink.changelog_sink(table, NUMBER, ["id"], at, batches, once)
        elif kind == "at least once":
            sink = JdbcSink.sink(insert, NUMBER, at, batches)
        else:
            sink = JdbcSink.exactly_once_sink(insert, NUMBER, at, batches, once)
        return sink, lambda: [Row(id=n, word=word) for n, word in postgres.rows(table)]

    check_sink(create, ROWS, exactly_once=kind != "at least once", seeds=seeds)
