"""ElasticsearchSink against a server that fails, and errors of programs, without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.connectors.elasticsearch.client import (
    ElasticsearchError,
    ElasticsearchUnavailableError,
)
from firesteel.connectors.elasticsearch.settings import BulkSettings
from firesteel.datastream.connectors.base import (
    DeliveryGuarantee,
    SinkWriter,
    WriteContext,
    WriterContext,
)
from firesteel.datastream.connectors.elasticsearch import (
    Elasticsearch6SinkBuilder,
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    ElasticsearchSink,
    FlushBackoffType,
)
from firesteel.errors import FiresteelError, InvalidProgramError
from firesteel.testing import Crash, JobHarness, ScriptedSource, check_sink
from tests.recovery.jobs import RESTARTS
from tests.servers.bulk_server import BulkServer, bulk_server
from tests.servers.ports import free_ports

BY_ID = ElasticsearchEmitter.static_index("numbers", "id")
NEW = ElasticsearchEmitter.static_index("numbers")


@pytest.fixture
def server() -> Iterator[BulkServer]:
    with bulk_server() as running:
        yield running


def builder(*hosts: str) -> Elasticsearch7SinkBuilder:
    return Elasticsearch7SinkBuilder().set_hosts(list(hosts)).set_emitter(BY_ID)


def writer(of: Elasticsearch7SinkBuilder, subtask: int = 0) -> SinkWriter:
    return of.build().create_writer(WriterContext(subtask, 2, "a1b2"))


def documents(numbers: range | list[int]) -> list[dict[str, Any]]:
    return [{"id": number, "square": number * number} for number in numbers]


def write(of: SinkWriter, numbers: range | list[int]) -> None:
    of.write_batch(documents(numbers), None, WriteContext())


def expected(numbers: range) -> dict[str, dict[str, Any]]:
    return {str(document["id"]): document for document in documents(numbers)}


def test_requests_have_the_size_that_is_set(server: BulkServer) -> None:
    opened = writer(builder(server.host).set_bulk_flush_max_actions(4))
    write(opened, range(10))
    assert server.requests == [4, 4]
    opened.flush(end_of_input=False)
    opened.flush(end_of_input=False)
    assert server.requests == [4, 4, 2]
    assert server.of_index("numbers") == expected(range(10))
    assert server.connections == 1
    opened.close()


def test_requests_have_at_most_so_many_megabytes(server: BulkServer) -> None:
    limited = builder(server.host).set_bulk_flush_max_actions(-1).set_bulk_flush_max_size_mb(1)
    opened = writer(limited)
    opened.write_batch([{"id": n, "text": "x" * 400_000} for n in range(5)], None, WriteContext())
    opened.flush(end_of_input=True)
    assert server.requests == [2, 2, 1]
    opened.close()


def test_without_a_guarantee_actions_wait_for_a_full_request(server: BulkServer) -> None:
    opened = writer(builder(server.host).set_delivery_guarantee(DeliveryGuarantee.NONE))
    write(opened, range(3))
    opened.flush(end_of_input=False)
    assert server.requests == []
    opened.flush(end_of_input=True)
    assert server.requests == [3]
    opened.close()


def test_actions_wait_no_longer_than_the_interval(
    server: BulkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(
        "firesteel.connectors.elasticsearch.writer.time.monotonic", lambda: clock[0]
    )
    settings = builder(server.host).set_delivery_guarantee(DeliveryGuarantee.NONE)
    opened = writer(settings.set_bulk_flush_interval(500))
    assert opened.next_flush_delay() == 0.5
    write(opened, range(3))
    clock[0] += 0.4
    opened.flush(end_of_input=False)
    assert server.requests == []
    clock[0] += 0.1
    opened.flush(end_of_input=False)
    assert server.requests == [3]
    write(opened, range(3, 4))
    clock[0] += 0.5
    write(opened, range(4, 5))
    assert server.requests == [3, 2]
    opened.close()


def patient(host: str) -> Elasticsearch7SinkBuilder:
    """A sink that repeats requests three times."""
    return builder(host).set_bulk_flush_backoff_strategy(FlushBackoffType.CONSTANT, 3, 0)


def test_rejected_actions_are_repeated_in_order(server: BulkServer) -> None:
    """The second of two changes of a document wins, also if only the first one was rejected."""
    server.failures = ["reject", "reject"]
    opened = writer(patient(server.host))
    changes = [{"id": 1, "v": "old"}, {"id": 1, "v": "new"}, {"id": 2, "v": "a"}, {"id": 3, "v": 1}]
    opened.write_batch(changes, None, WriteContext())
    opened.flush(end_of_input=False)
    found = {key: document["v"] for key, document in server.of_index("numbers").items()}
    assert found == {"1": "new", "2": "a", "3": 1}
    # Actions 1, 2 and 3 were repeated, then 1, 2 and 3 again: the first and the third failed.
    assert server.requests == [4, 3, 3]
    opened.close()


def test_new_documents_are_not_repeated_needlessly(server: BulkServer) -> None:
    server.failures = ["reject"]
    opened = writer(patient(server.host).set_emitter(NEW))
    write(opened, range(5))
    opened.flush(end_of_input=False)
    assert server.requests == [5, 3]
    assert sorted(found["id"] for found in server.of_index("numbers").values()) == [*range(5)]
    opened.close()


def test_an_overloaded_server_and_a_lost_answer(server: BulkServer) -> None:
    server.failures = ["overload", "lose", "overload"]
    opened = writer(patient(server.host))
    write(opened, range(5))
    opened.flush(end_of_input=False)
    assert server.of_index("numbers") == expected(range(5))
    opened.close()


def test_a_server_that_stays_overloaded(server: BulkServer) -> None:
    server.failures = ["overload"] * 9
    opened = writer(patient(server.host))
    write(opened, range(5))
    with pytest.raises(ElasticsearchUnavailableError, match=r"all shards failed \(HTTP 503\)"):
        opened.flush(end_of_input=False)
    assert len(server.failures) == 5
    opened.close()
    server.failures = ["reject"]
    opened = writer(builder(server.host))
    write(opened, range(5))
    with pytest.raises(FiresteelError, match=r"queue is full \(status 429\).* 2 more documents"):
        opened.flush(end_of_input=False)
    opened.close()


def test_a_closed_connection_is_opened_again(server: BulkServer) -> None:
    """A server closes connections without work. That is no failure."""
    opened = writer(builder(server.host))
    write(opened, range(2))
    opened.flush(end_of_input=False)
    opened._client._connection.sock.shutdown(2)  # type: ignore[attr-defined]
    write(opened, range(2, 4))
    opened.flush(end_of_input=False)
    assert server.of_index("numbers") == expected(range(4))
    assert server.connections == 2
    opened.close()


def test_the_next_server_takes_over(server: BulkServer) -> None:
    dead = f"127.0.0.1:{free_ports(1)[0]}"
    for subtask in (0, 1):
        opened = writer(builder(dead, server.host), subtask)
        write(opened, range(5 * subtask, 5 * subtask + 5))
        opened.flush(end_of_input=False)
        opened.close()
    assert server.of_index("numbers") == expected(range(10))


def test_errors_name_the_servers_and_the_settings(server: BulkServer) -> None:
    dead = f"127.0.0.1:{free_ports(1)[0]}"
    opened = writer(builder(dead))
    write(opened, range(1))
    with pytest.raises(
        ElasticsearchUnavailableError, match=rf"http://{dead} cannot be used.*refused"
    ):
        opened.flush(end_of_input=False)
    opened = writer(builder(server.host).set_connection_path_prefix("/wrong/"))
    write(opened, range(1))
    with pytest.raises(ElasticsearchError, match=r"HTTP 404.*set_connection_path_prefix"):
        opened.flush(end_of_input=False)
    opened.close()


def test_a_password_and_a_prefix() -> None:
    with bulk_server("ann:secret", "/search") as server:
        hidden = builder(server.host).set_connection_path_prefix("search")
        opened = writer(hidden)
        write(opened, range(1))
        with pytest.raises(ElasticsearchError, match=r"missing user.*set_connection_password"):
            opened.flush(end_of_input=False)
        opened.close()
        hidden = hidden.set_connection_username("ann").set_connection_password("secret")
        opened = writer(hidden)
        write(opened, range(3))
        opened.flush(end_of_input=False)
        opened.close()
        assert server.of_index("numbers") == expected(range(3))
        assert "secret" not in repr(hidden.build())


def test_a_document_that_is_refused(server: BulkServer) -> None:
    upper = builder(server.host).set_emitter(ElasticsearchEmitter.static_index("Numbers"))
    opened = writer(upper)
    write(opened, range(3))
    with pytest.raises(FiresteelError) as caught:
        opened.flush(end_of_input=False)
    assert "index 'Numbers': invalid_index_name_exception" in str(caught.value)
    assert '"square":0' in str(caught.value)
    assert "2 more documents failed" in str(caught.value)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    opened.close()


def test_deleting_what_is_not_there_is_no_error(server: BulkServer) -> None:
    from firesteel.common import Row, RowKind

    totals = Types.ROW_NAMED(["id", "square"], [Types.INT(), Types.INT()])
    sink = builder(server.host).build().with_input_type(totals)
    opened = sink.create_writer(WriterContext(0, 1, "a1b2"))
    changes = [Row.of_kind(RowKind.DELETE, 1, 1), Row.of_kind(RowKind.INSERT, 2, 4)]
    opened.write_batch(changes, None, WriteContext())
    opened.flush(end_of_input=False)
    assert server.of_index("numbers") == {"2": {"id": 2, "square": 4}}
    opened.close()


def test_a_job_that_crashes_writes_each_document(server: BulkServer) -> None:
    source = ScriptedSource([*documents(range(5)), Crash("a bug"), *documents(range(5, 9))])
    sink = builder(server.host).build()

    JobHarness(
        lambda env: env.from_source(source, None, "numbers").sink_to(sink),
        records_per_epoch=2,
        checkpoint_every=0,
        configuration=RESTARTS,
    ).run()
    assert server.of_index("numbers") == expected(range(9))
    # Without a checkpoint, the job writes the first documents again.
    assert sum(server.requests) == 13


@pytest.mark.parametrize("key", ["id", None])
def test_the_contract_of_connectors(server: BulkServer, key: str | None) -> None:
    number = 0

    def create() -> tuple[ElasticsearchSink, Callable[[], list[dict[str, Any]]]]:
        nonlocal number
        number += 1
        index = f"numbers-{number}"
        emitter = ElasticsearchEmitter.static_index(index, key)
        sink = builder(server.host).set_emitter(emitter).set_bulk_flush_max_actions(3).build()
        return sink, lambda: list(server.of_index(index).values())

    check_sink(create, documents(range(30)), exactly_once=False, seeds=range(3))


def test_a_record_that_is_no_document_is_shown(server: BulkServer) -> None:
    sink = builder(server.host).build()
    harness = JobHarness(lambda env: env.from_collection(["text"]).sink_to(sink))
    with pytest.raises(FiresteelError, match=r"dicts, or rows with named fields, got 'text'"):
        harness.run()


def test_pauses_grow_as_in_elasticsearch() -> None:
    growing = BulkSettings(backoff=FlushBackoffType.EXPONENTIAL, retries=8, delay_millis=50)
    assert [growing.pause(attempt) for attempt in range(4)] == [0.05, 0.06, 0.08, 0.15]
    constant = BulkSettings(backoff=FlushBackoffType.CONSTANT, retries=8, delay_millis=50)
    assert constant.pause(7) == 0.05


def test_programs_that_cannot_work() -> None:
    with pytest.raises(InvalidProgramError, match="set_hosts was not called"):
        Elasticsearch7SinkBuilder().set_emitter(NEW).build()
    with pytest.raises(InvalidProgramError, match="set_emitter was not called"):
        Elasticsearch7SinkBuilder().set_hosts("localhost:9200").build()
    with pytest.raises(InvalidProgramError, match="key field in the emitter"):
        builder("a:1").set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    with pytest.raises(InvalidProgramError, match="belong together"):
        builder("a:1").set_connection_username("ann").build()
    with pytest.raises(InvalidProgramError, match="doc_type"):
        Elasticsearch6SinkBuilder().set_hosts("a:1").set_emitter(NEW).build()
    with pytest.raises(TypeError, match="set_emitter expects"):
        builder("a:1").set_emitter("index")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "host", ["ftp://a", "http://", "a:b", "http://a/path", "http://ann:secret@a:9200", ""]
)
def test_hosts_that_are_no_addresses(host: str) -> None:
    with pytest.raises(ValueError, match="set_hosts expects addresses"):
        builder(host)


def test_settings_out_of_range() -> None:
    some = builder("a:1")
    for method in ("set_bulk_flush_max_actions", "set_bulk_flush_max_size_mb"):
        with pytest.raises(ValueError, match=f"{method} expects at least 1, got 0"):
            getattr(some, method)(0)
    for method in (
        "set_socket_timeout",
        "set_connection_timeout",
        "set_connection_request_timeout",
    ):
        with pytest.raises(ValueError, match=f"{method} expects at least 0, got -1"):
            getattr(some, method)(-1)
    with pytest.raises(ValueError, match="CONSTANT or EXPONENTIAL"):
        some.set_bulk_flush_backoff_strategy(FlushBackoffType.NONE, 1, 1)
    with pytest.raises(ValueError, match="at least one server"):
        some.set_hosts([])
