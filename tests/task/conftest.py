"""Fixtures of the tests of the task side: pieces of graphs, state backends, errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from firesteel.datastream import EmbeddedRocksDBStateBackend, HashMapStateBackend
from firesteel.errors import UserFunctionError
from firesteel.graph.operator_specs import MapSpec
from firesteel.graph.partitioning import Partitioning
from firesteel.graph.stream_graph import StreamEdge, StreamNode
from firesteel.graph.transformations import ChainingStrategy
from firesteel.protocol.rows import DATA, BufferRow
from firesteel.task.exchange.buffers import decode_buffer
from firesteel.task.exchange.record_writers import RecordWriter
from firesteel.task.record_batch import RecordBatch
from firesteel.task.slot_wiring import create_record_writer
from firesteel.testing import OperatorHarness


def make_node(node_id: int, parallelism: int, buffer_timeout: int = 100) -> StreamNode:
    return StreamNode(
        id=node_id,
        operator_id=str(node_id),
        name=f"node {node_id}",
        description="",
        spec=MapSpec(str),
        parallelism=parallelism,
        max_parallelism=128,
        slot_sharing_group="default",
        chaining=ChainingStrategy.ALWAYS,
        buffer_timeout=buffer_timeout,
    )


class Sent:
    """A record writer with what it sent."""

    def __init__(
        self,
        partitioning: Partitioning,
        *,
        sources: int = 1,
        targets: int = 1,
        subtask: int = 0,
        first_slot: int = 0,
        buffer_timeout: int = 100,
        epoch: int = 0,
    ) -> None:
        self.rows: list[BufferRow] = []
        self.writer: RecordWriter = create_record_writer(
            StreamEdge(id=3, source=1, target=2, partitioning=partitioning),
            make_node(1, sources, buffer_timeout),
            make_node(2, targets),
            subtask,
            first_slot,
            self.rows.append,
        )
        self.writer.begin_epoch(epoch)

    def emit(self, values: list[Any], timestamps: list[int] | None = None) -> None:
        self.writer.emit(RecordBatch(values, timestamps))

    def buffers(self) -> list[tuple[int, tuple[Any, Any, Any]]]:
        """The slot of each buffer, with its values, keys and timestamps."""
        sent = [(r.target, decode_buffer(r.payload)) for r in self.rows if r.kind == DATA]
        return [(slot, (b.values, b.sent_keys, b.timestamps)) for slot, b in sent]

    def values(self) -> dict[int, list[Any]]:
        """The records of each slot."""
        by_slot: dict[int, list[Any]] = {}
        for slot, (values, _, _) in self.buffers():
            by_slot.setdefault(slot, []).extend(values)
        return by_slot


@pytest.fixture
def sent() -> Callable[..., Sent]:
    return Sent


@pytest.fixture(params=[HashMapStateBackend, EmbeddedRocksDBStateBackend])
def every_backend(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The test runs on each state backend."""
    monkeypatch.setattr(OperatorHarness, "default_state_backend", request.param())
    made: list[OperatorHarness] = []
    create = OperatorHarness.__init__

    def remember(harness: OperatorHarness, *arguments: Any, **options: Any) -> None:
        create(harness, *arguments, **options)
        made.append(harness)

    monkeypatch.setattr(OperatorHarness, "__init__", remember)
    yield
    for harness in made:
        harness.close()


Blames = Callable[..., UserFunctionError]


@pytest.fixture
def blames() -> Blames:
    """Feed the values; the error must name operator, function, file, line and the last record."""

    def check(
        harness: OperatorHarness,
        values: list[Any],
        *,
        operator: str,
        function: Callable[..., Any],
        second: bool = False,
    ) -> UserFunctionError:
        process = harness.process_element2 if second else harness.process_element1
        for value in values[:-1]:
            process(value)
        # Records behind the bad one in the same batch do not change the blame.
        batch = [*values, values[0]]
        with pytest.raises(UserFunctionError) as caught:
            process(values[-1]) if second else harness.process_elements(batch)
        error = caught.value
        code = inspect.unwrap(function).__code__
        assert error.operator == operator
        assert error.function == function.__qualname__
        assert (error.file, error.line) == (code.co_filename, code.co_firstlineno)
        assert error.record == repr(values[-1])
        assert "ZeroDivisionError" in error.traceback_text
        assert "firesteel/task" not in error.traceback_text
        return error

    return check
