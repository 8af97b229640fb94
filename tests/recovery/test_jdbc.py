"""Jobs that write to databases and are interrupted, without Spark: the tables are exact."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from firesteel.checkpoint.rules.requests import StopMode
from firesteel.common import Configuration, Row, RowKind, Types
from firesteel.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from firesteel.datastream.functions import KeyedProcessFunction
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.testing import Fault, JobHarness
from tests.recovery.jobs import INTERRUPTIONS, RESTARTS, run_with_interruptions
from tests.servers.postgres import PostgresServer, running_postgres

COUNT = 90
KEYS = 7

RECORD = Types.ROW_NAMED(["key", "number", "value"], [Types.INT(), Types.INT(), Types.INT()])
TOTAL = Types.ROW_NAMED(["key", "count", "total"], [Types.INT(), Types.INT(), Types.LONG()])
ORDER = Types.ROW_NAMED(["order_id", "payment_id"], [Types.INT(), Types.INT()])

SETTINGS = Configuration(RESTARTS).add_all(
    Configuration.from_dict(
        {
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "restart-strategy.fixed-delay.attempts": "1000",
        }
    )
)


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    """A server that tests may kill."""
    with running_postgres() as server:
        yield server


def removes(value: int) -> bool:
    """Some keys are removed in between, and some at the end."""
    return value % 9 == 0 or (value >= COUNT - KEYS and value % 2 == 0)


class Totals(KeyedProcessFunction):
    """The changelog of a count and a sum for each key. Some values remove their key."""

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(
            ValueStateDescriptor("total", Types.TUPLE([Types.INT(), Types.LONG()]))
        )

    def process_element(self, value: int, ctx: Any) -> Iterator[Row]:
        key = ctx.get_current_key()
        old = self.total.value()
        if removes(value):
            if old is not None:
                yield Row.of_kind(RowKind.DELETE, key, *old)
            self.total.clear()
            return
        new = (1, value) if old is None else (old[0] + 1, old[1] + value)
        self.total.update(new)
        if old is not None:
            yield Row.of_kind(RowKind.UPDATE_BEFORE, key, *old)
        yield Row.of_kind(RowKind.INSERT if old is None else RowKind.UPDATE_AFTER, key, *new)


class Numbered(KeyedProcessFunction):
    """(key, number in its key, value)."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: int, ctx: Any) -> Iterator[Row]:
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        yield Row(ctx.get_current_key(), number, value)


PARTS = ("records", "changes")


@dataclass(frozen=True)
class Tables:
    """The job of these tests, and its tables.

    seconds_per_record: the time that a record takes, so that the job lasts.
    """

    url: str
    part: str
    records: str
    totals: str
    joined: str
    seconds_per_record: float = 0.0

    def build(self, env: Any) -> None:
        connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(self.url)
        at = connection.build()
        batches = JdbcExecutionOptions.builder().with_batch_size(5).build()
        once = JdbcExactlyOnceOptions.builder
        sinks = [
            JdbcSink.exactly_once_sink(
                f"INSERT INTO {self.records} VALUES (?, ?, ?)",
                RECORD,
                at,
                batches,
                once().with_transaction_id_prefix(self.records).build(),
            ),
            JdbcSink.changelog_sink(
                self.totals,
                TOTAL,
                ["key"],
                at,
                batches,
                once().with_transaction_id_prefix(self.totals).build(),
            ),
            JdbcSink.changelog_sink(
                self.joined,
                ORDER,
                ["order_id", "payment_id"],
                at,
                batches,
                once().with_transaction_id_prefix(self.joined).build(),
            ),
        ]

        seconds = self.seconds_per_record

        def take_time(value: int) -> int:
            if seconds:
                time.sleep(seconds)
            return value

        numbers = env.from_collection(list(range(COUNT)), Types.INT())
        # One subtask keeps the order of each key, on which the totals depend.
        numbers = numbers.map(take_time, Types.INT()).set_parallelism(1)
        keyed = numbers.key_by(lambda value: value % KEYS, Types.INT())
        if self.part == "records":
            keyed.process(Numbered(), RECORD).sink_to(sinks[0]).uid("records")
            return
        keyed.process(Totals(), TOTAL).sink_to(sinks[1]).uid("totals")
        orders = env.from_collection(list(range(0, COUNT, 2)), Types.INT())
        # Most orders come before their payments, and are taken back.
        payments = env.from_collection(list(range(0, COUNT, 3))[::-1], Types.INT())
        joined = (
            orders.join_on(payments, how="left")
            .where(lambda order: order % 30)
            .equal_to(lambda payment: payment % 30)
            .apply(lambda order, payment: (order, -1 if payment is None else payment), ORDER)
        )
        joined.sink_to(sinks[2]).uid("joined")


class Job:
    """Writes records, or totals by key and a join, each into its table, all exactly once.

    A lost task returns a job with open transactions to its checkpoint. Without them, the job
    continues from the last epoch, so that both have a job of their own.
    """

    def __init__(self, server: PostgresServer, part: str, seconds_per_record: float = 0.0) -> None:
        self.server = server
        tables = Tables(
            server.url,
            part,
            server.table("key INT, number INT, value INT"),
            server.table("key INT PRIMARY KEY, count INT, total BIGINT"),
            server.table("order_id INT, payment_id INT, PRIMARY KEY (order_id, payment_id)"),
            seconds_per_record,
        )
        self.tables = tables
        self.part, self.records, self.totals, self.joined = (
            tables.part,
            tables.records,
            tables.totals,
            tables.joined,
        )

    def __call__(self, env: Any) -> None:
        self.tables.build(env)

    def check(self) -> None:
        if self.part == "records":
            self.check_records()
        else:
            self.check_changes()

    def check_records(self) -> None:
        server = self.server
        found = server.execute(f"SELECT value, count(*) FROM {self.records} GROUP BY value")
        assert sorted(found) == [(value, 1) for value in range(COUNT)]
        per_key = f"SELECT count(DISTINCT number), max(number) FROM {self.records} GROUP BY key"
        assert all(count == largest for count, largest in server.execute(per_key))
        assert server.prepared(self.records) == []

    def check_changes(self) -> None:
        """The database computes the same join from the inputs."""
        server = self.server
        expected_join = server.execute(
            f"SELECT o, coalesce(p, -1) FROM generate_series(0, {COUNT - 1}, 2) AS o "
            f"LEFT JOIN generate_series(0, {COUNT - 1}, 3) AS p ON o % 30 = p % 30"
        )
        assert server.rows(self.joined) == sorted(expected_join, key=repr)
        assert server.rows(self.totals) == self.expected_totals()
        for table in (self.totals, self.joined):
            assert server.rows(f"{table}_firesteel_journal") == []

    def expected_totals(self) -> list[Any]:
        totals: dict[int, tuple[int, int]] = {}
        for value in range(COUNT):
            key = value % KEYS
            if removes(value):
                totals.pop(key, None)
            else:
                count, total = totals.get(key, (0, 0))
                totals[key] = (count + 1, total + value)
        return sorted(((key, *total) for key, total in totals.items()), key=repr)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("ends", INTERRUPTIONS)
def test_each_row_once(postgres: PostgresServer, ends: str, part: str) -> None:
    job = Job(postgres, part)
    run_with_interruptions(job, ends, seed=len(ends))
    job.check()


ACTIONS = (
    *("epoch", "epoch", "epoch", "checkpoint", "checkpoint", "faults", "slow_checkpoint"),
    *("crash", "savepoint", "rescale", "kill", "kill_database"),
)


class History:
    """A job whose driver, tasks and database are killed in random order."""

    def __init__(self, server: PostgresServer, part: str, seed: int, execution: str) -> None:
        self.random = Random(seed)
        self.job = Job(server, part)
        self.server = server
        self.arguments: dict[str, Any] = {
            "parallelism": self.random.randint(1, 3),
            "records_per_epoch": (2, 1, 3),
            "configuration": Configuration(SETTINGS).set_string("firesteel.execution", execution),
            "checkpoint_every": 0,
            "seed": seed,
        }
        self.origin: str | None = None
        self.harness = JobHarness(self.job, **self.arguments)

    def act(self) -> None:
        action = self.random.choice(ACTIONS)
        if not self.harness.status.is_terminal_state():
            getattr(self, f"_{action}")()

    def _epoch(self) -> None:
        self.harness.run_epoch()

    def _faults(self) -> None:
        places = self.harness.places()
        chosen = self.random.sample(places, self.random.randint(1, len(places)))
        self.harness.run_epoch({place: self.random.choice([*Fault]) for place in chosen})

    def _checkpoint(self) -> None:
        self.harness.request_checkpoint()
        self.harness.run_epoch()

    def _slow_checkpoint(self) -> None:
        self.harness.storage_is_stuck = True
        self._checkpoint()
        for _ in range(self.random.randint(0, 2)):
            self.harness.run_epoch()
        self.harness.storage_is_stuck = False

    def _crash(self) -> None:
        self.harness.crash()

    def _savepoint(self) -> None:
        answer = self.harness.request_savepoint()
        while not answer.done() and self.harness.run_epoch():
            pass

    def _rescale(self) -> None:
        answer = self.harness.request_savepoint(stop=StopMode.SUSPEND)
        self.harness.run()
        if answer.exception() is None:
            self.origin = answer.result()
            self.harness = self.harness.resume(
                self.origin, parallelism=self.random.randint(1, 3), records_per_epoch=(2, 1, 3)
            )

    def _kill(self) -> None:
        self.harness.kill()
        own = self.harness.checkpoint_directory()
        if any(own.glob("chk-*/_metadata")):
            self.origin = str(own.parent)
        if self.origin is None:
            self.harness = JobHarness(self.job, **self.arguments)
        else:
            self.harness = self.harness.resume(self.origin)

    def _kill_database(self) -> None:
        """Its connections are lost, also those in the middle of a transaction."""
        self.server.restart()


@pytest.mark.parametrize(
    ("seed", "steps"),
    [
        (1, 25),
        *(pytest.param(seed, 60, marks=pytest.mark.slow) for seed in range(100, 120)),
    ],
)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("execution", ["micro-batch", "real-time"])
def test_whatever_happens_the_tables_are_exact(
    own_postgres: PostgresServer, seed: int, steps: int, execution: str, part: str
) -> None:
    history = History(own_postgres, part, seed, execution)
    for _ in range(steps):
        history.act()
    history.harness.run()
    history.job.check()
