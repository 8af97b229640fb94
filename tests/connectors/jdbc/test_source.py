"""JdbcSource on real databases, without Spark: ranges, positions, new rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.common.time import Duration
from firesteel.datastream.connectors.base import ReaderContext
from firesteel.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcSource,
    JdbcSourceBuilder,
)
from firesteel.errors import FiresteelError
from firesteel.testing import JobHarness
from tests.recovery.jobs import INTERRUPTIONS, run_with_interruptions
from tests.servers.postgres import PostgresServer
from tests.servers.sqlite import SqliteServer
from tests.thoroughness import examples

Server = PostgresServer | SqliteServer

WORDS = Types.ROW_NAMED(["word", "id"], [Types.STRING(), Types.INT()])
NO_WATERMARKS = WatermarkStrategy.no_watermarks()


def builder(server: Any, table: str) -> JdbcSourceBuilder:
    connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(server.url)
    return (
        JdbcSource.builder()
        .set_connection_options(connection.build())
        .set_table(table)
        .set_type_info(WORDS)
        .set_split_column("id")
        .set_fetch_size(4)
    )


def filled(server: Any, ids: Any) -> str:
    table: str = server.table("id INT PRIMARY KEY, word TEXT, more TEXT")
    values = ", ".join(f"({number}, 'word {number}', 'x')" for number in ids)
    if values:
        server.execute(f"INSERT INTO {table} VALUES {values}")
    return table


def words(ids: Any) -> list[Row]:
    return [Row(word=f"word {number}", id=number) for number in ids]


@pytest.mark.parametrize("ids", [[], [7], range(-20, 40), [1, 1000, 1_000_000]])
def test_a_table_is_read_in_parallel(server: Server, ids: Any, driver: Any) -> None:
    source = builder(server, filled(server, ids)).build()
    by_subtask = driver.read_all(source, parallelism=2, limit=3)
    found = [record for records in by_subtask for record in records]
    assert sorted(found, key=repr) == sorted(words(ids), key=repr)
    if len(ids) > 10:
        assert all(len(records) > 10 for records in by_subtask)


def test_a_condition(server: Server) -> None:
    source = builder(server, filled(server, range(10))).set_condition("id > 3 OR id = 1").build()
    harness = JobHarness(lambda env: env.from_source(source, NO_WATERMARKS, "words"))
    harness.run()
    assert sorted(row.id for row in harness.collected) == [1, 4, 5, 6, 7, 8, 9]


@given(steps=st.lists(st.integers(0, 9), max_size=12), ids=st.sets(st.integers(-9, 60)))
@settings(
    max_examples=examples(30),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_any_restarts_give_each_row_once_in_order(
    tmp_path_factory: Any, driver: Any, steps: list[int], ids: set[int]
) -> None:
    server = SqliteServer(tmp_path_factory.mktemp("restarts"))
    source = builder(server, filled(server, sorted(ids))).set_split_count(3).build()
    splits = driver.persisted(source.create_enumerator(1).discover_splits())
    new_reader: Callable[[], Any] = lambda: source.create_reader(ReaderContext(0, 1))  # noqa: E731
    assert driver.read_with_restarts(new_reader, splits, steps) == words(sorted(ids))


@pytest.mark.parametrize("ends", INTERRUPTIONS)
def test_a_job_that_is_interrupted(server: Server, ends: str, tmp_path: Any) -> None:
    from firesteel.testing import ListSink

    source = builder(server, filled(server, range(90))).build()
    sink = ListSink(tmp_path / "out")

    def program(env: Any) -> None:
        rows = env.from_source(source, NO_WATERMARKS, "words")
        rows.map(lambda row: row.id).rebalance().sink_to(sink)

    run_with_interruptions(program, ends, seed=len(ends))
    assert sorted(sink.values()) == [*range(90)]


@pytest.mark.parametrize("start", [[], range(10)])
def test_new_rows_are_read_also_after_a_restart(server: Server, start: Any) -> None:
    table = filled(server, start)
    source = builder(server, table).monitor_continuously(Duration.of_millis(1)).build()
    harness = JobHarness(
        lambda env: env.from_source(source, NO_WATERMARKS, "words"),
        checkpoint_every=1,
        parallelism=2,
    )

    def run_until(harness: JobHarness, ids: Any) -> None:
        deadline = time.monotonic() + 60
        while sorted(row.id for row in harness.collected) != [*ids]:
            assert harness.run_epoch()
            assert time.monotonic() < deadline, harness.collected

    run_until(harness, start)
    server.execute(f"INSERT INTO {table} VALUES (10, 'word', ''), (11, 'word', '')")
    run_until(harness, [*start, 10, 11])
    savepoint = harness.stop()
    server.execute(f"INSERT INTO {table} VALUES (12, 'word', '')")
    resumed = harness.resume(savepoint)
    run_until(resumed, [12])
    resumed.cancel()


def test_a_column_that_has_no_numbers(server: Server) -> None:
    source = builder(server, filled(server, range(3))).set_split_column("word").build()
    with pytest.raises(FiresteelError, match="'word' must have whole numbers, got 'word 0'"):
        JobHarness(lambda env: env.from_source(source, NO_WATERMARKS, "words")).run()
