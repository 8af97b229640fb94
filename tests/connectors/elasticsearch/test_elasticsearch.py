"""ElasticsearchSink on a real node, without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from firesteel.common import Configuration, Types
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.elasticsearch import (
    Elasticsearch6SinkBuilder,
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    FlushBackoffType,
)
from firesteel.errors import FiresteelError
from firesteel.testing import Fault, JobHarness
from tests.recovery.jobs import RESTARTS
from tests.servers.elasticsearch import ElasticsearchServer, running_elasticsearch

pytestmark = pytest.mark.slow

SETTINGS = Configuration(RESTARTS).set_string("restart-strategy.fixed-delay.attempts", "1000")
WORDS = Types.ROW_NAMED(["word", "number"], [Types.STRING(), Types.INT()])
NUMBERS = 200


@pytest.fixture(scope="module")
def node() -> Iterator[ElasticsearchServer]:
    with running_elasticsearch() as server:
        yield server


def builder(node: ElasticsearchServer, emitter: ElasticsearchEmitter) -> Elasticsearch7SinkBuilder:
    return Elasticsearch7SinkBuilder().set_hosts(node.host).set_emitter(emitter)


def test_documents_of_rows_and_of_dicts(node: ElasticsearchServer) -> None:
    rows, dicts = node.index(), node.index()
    by_word = builder(node, ElasticsearchEmitter.static_index(rows, "word")).build()
    new = builder(node, ElasticsearchEmitter.static_index(dicts)).build()

    def program(env: StreamExecutionEnvironment) -> None:
        env.from_collection([("to", 1), ("be", 2), ("to", 3)], WORDS).sink_to(by_word)
        env.from_collection([{"n": number} for number in range(2500)]).sink_to(new)

    JobHarness(program).run()
    assert node.documents(rows) == {
        "to": {"word": "to", "number": 3},
        "be": {"word": "be", "number": 2},
    }
    found = Counter(document["n"] for document in node.documents(dicts).values())
    assert found == Counter(range(2500))


def test_the_builder_for_the_version_with_types(node: ElasticsearchServer) -> None:
    """Elasticsearch 7 still knows the types that Elasticsearch 6 needs."""
    index = node.index()
    emitter = ElasticsearchEmitter.static_index(index, "word", "_doc")
    sink = Elasticsearch6SinkBuilder().set_hosts([node.host]).set_emitter(emitter).build()
    JobHarness(lambda env: env.from_collection([("to", 1)], WORDS).sink_to(sink)).run()
    assert node.documents(index) == {"to": {"word": "to", "number": 1}}


def test_an_index_per_record(node: ElasticsearchServer) -> None:
    first, second = node.index(), node.index()
    sink = builder(node, ElasticsearchEmitter.dynamic_index("index", "id")).build()
    records = [{"index": first, "id": 1}, {"index": second, "id": 2}]
    JobHarness(lambda env: env.from_collection(records).sink_to(sink)).run()
    assert [*node.documents(first), *node.documents(second)] == ["1", "2"]


def test_a_document_that_does_not_fit_its_index(node: ElasticsearchServer) -> None:
    index = node.index({"number": {"type": "integer"}})
    sink = builder(node, ElasticsearchEmitter.static_index(index)).build()
    records = [{"number": 1}, {"number": "one"}]
    with pytest.raises(FiresteelError, match=r"mapper_parsing_exception.*\[number\].*\"one\""):
        JobHarness(lambda env: env.from_collection(records).sink_to(sink)).run()


def test_the_table_of_changes(node: ElasticsearchServer) -> None:
    """Documents equal the result of an aggregation that emits changes."""
    from firesteel.common import Row, RowKind

    index = node.index()
    random = Random(1)
    table: dict[str, int] = {}
    changes = []
    for _ in range(500):
        key = f"k{random.randrange(20)}"
        if key in table and random.random() < 0.3:
            changes.append(Row.of_kind(RowKind.DELETE, key, table.pop(key)))
            continue
        if key in table:
            changes.append(Row.of_kind(RowKind.UPDATE_BEFORE, key, table[key]))
        kind = RowKind.UPDATE_AFTER if key in table else RowKind.INSERT
        table[key] = random.randrange(100)
        changes.append(Row.of_kind(kind, key, table[key]))
    sink = builder(node, ElasticsearchEmitter.static_index(index, "word")).build()
    JobHarness(
        lambda env: env.from_collection(changes, WORDS).sink_to(sink), records_per_epoch=7
    ).run()
    assert node.documents(index) == {
        key: {"word": key, "number": number} for key, number in table.items()
    }


ACTIONS = ["epoch"] * 6 + ["checkpoint"] * 3 + ["lose", "crash", "kill", "server"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_whatever_happens(node: ElasticsearchServer, seed: int) -> None:
    """Tasks, drivers and the server are killed. Each document is there, once by its key."""
    random = Random(seed)
    by_key, new = node.index(), node.index()

    def program(env: StreamExecutionEnvironment) -> None:
        stream = env.from_collection([{"id": number} for number in range(NUMBERS)]).rebalance()
        for index, key in ((by_key, "id"), (new, None)):
            of_index = builder(node, ElasticsearchEmitter.static_index(index, key))
            of_index.set_bulk_flush_backoff_strategy(FlushBackoffType.CONSTANT, 5, 100)
            stream.sink_to(of_index.set_bulk_flush_max_actions(50).build())

    arguments: dict[str, Any] = {
        "records_per_epoch": (3, 7, 20),
        "configuration": SETTINGS,
        "checkpoint_every": 0,
        "parallelism": 2,
        "seed": seed,
    }
    harness = JobHarness(program, **arguments)
    origin: str | None = None
    for _ in range(20):
        action = random.choice(ACTIONS)
        faults = None
        if action == "checkpoint":
            harness.request_checkpoint()
        elif action == "crash":
            harness.crash()
        elif action == "lose":
            faults = dict.fromkeys(harness.places(), Fault.LOSE_HOST)
        elif action == "server":
            node.close()
            node.start()
        elif action == "kill":
            harness.kill()
            own = harness.checkpoint_directory()
            if any(own.glob("chk-*/_metadata")):
                origin = str(own.parent)
            harness = JobHarness(program, **arguments) if origin is None else harness.resume(origin)
        harness.run_epoch(faults)
    harness.run()
    expected = {str(number): {"id": number} for number in range(NUMBERS)}
    assert node.documents(by_key) == expected
    assert {document["id"] for document in node.documents(new).values()} == {*range(NUMBERS)}
