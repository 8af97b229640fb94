"""The inbox of a live slot, on real sockets."""

from __future__ import annotations

import io
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import IO

import pyarrow as pa
import pytest

from firesteel.protocol.messages import EndEpoch
from firesteel.protocol.rows import DATA, LIVE_BUFFER_BYTES, BufferRow, packed, unpacked
from firesteel.spark.live_inbox import LiveInbox, SparkInput, ThreadedInbox
from firesteel.task.live_slot import InboxClosedError


def row(target: int, payload: bytes) -> BufferRow:
    return BufferRow(target, 1, 2, 3, DATA, payload)


class Spark:
    """Spark's end of the connection to a worker."""

    def __init__(self) -> None:
        here, there = socket.socketpair()
        self._socket = here
        self.to_worker: IO[bytes] = here.makefile("wb")
        # As PySpark opens it, with a buffer that reads ahead.
        self.stream = io.BufferedReader(io.FileIO(os.dup(there.fileno()), "rb"), 256)
        there.close()
        self._writer: pa.RecordBatchStreamWriter | None = None

    def send(self, batch: pa.RecordBatch) -> None:
        struct = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
        wrapped = pa.RecordBatch.from_arrays([struct], ["struct"])
        if self._writer is None:
            self._writer = pa.RecordBatchStreamWriter(self.to_worker, wrapped.schema)
        self._writer.write_batch(wrapped)
        self.to_worker.flush()

    def hang_up(self) -> None:
        self.to_worker.close()
        self._socket.close()


@pytest.fixture
def spark() -> Iterator[Spark]:
    spark = Spark()
    yield spark
    spark.hang_up()
    spark.stream.close()


def inbox_of(spark: Spark) -> LiveInbox:
    stream = SparkInput(spark.stream)
    return LiveInbox(stream, stream.batches())


def test_rows_of_a_target_are_one_row_of_spark_in_their_order() -> None:
    rows = [row(0, b"a"), row(1, b"b"), row(0, b"c")]
    batch = packed(rows, pushed=[0, 1])
    assert batch.column(0).to_pylist() == [0, 1, 0, 1]
    assert unpacked(batch) == [rows[0], rows[2], rows[1]]


def test_a_pushed_row_fills_a_buffer_of_spark() -> None:
    (payload,) = packed([], pushed=[7]).column(1).to_pylist()
    assert len(payload) >= LIVE_BUFFER_BYTES
    assert unpacked(packed([], pushed=[7])) == []


@pytest.mark.parametrize("size", [1, 300, 70_000, 1_000_000])
def test_rows_arrive_complete_and_in_order(spark: Spark, size: int) -> None:
    inbox = inbox_of(spark)
    sent = [[row(0, bytes([n]) * (size + n))] for n in range(5)]

    def send() -> None:
        for rows in sent:
            spark.send(packed(rows))

    sender = threading.Thread(target=send)
    sender.start()
    assert [inbox.take(10.0) for _ in sent] == sent
    sender.join()
    assert inbox.take(0.0) is None


def test_bytes_that_the_worker_has_read_ahead_are_not_lost(spark: Spark) -> None:
    spark.to_worker.write(b"head")
    spark.send(packed([row(0, b"x" * 5_000)]))
    assert spark.stream.read(4) == b"head"
    assert inbox_of(spark).take(10.0) == [row(0, b"x" * 5_000)]


def test_several_batches_that_arrive_at_once_are_found_without_waiting(spark: Spark) -> None:
    inbox = inbox_of(spark)
    for n in range(3):
        spark.send(packed([row(n, b"x")]))
    assert inbox.take(10.0) == [row(0, b"x")]
    assert inbox.take(0.0) == [row(1, b"x")]
    assert inbox.take(0.0) == [row(2, b"x")]


def test_a_message_wakes_up_a_slot_that_waits_for_rows(spark: Spark) -> None:
    inbox = inbox_of(spark)
    threading.Timer(0.05, inbox.put_message, [EndEpoch(3)]).start()
    assert inbox.take(30.0) == EndEpoch(3)


def test_a_wait_ends_after_its_time(spark: Spark) -> None:
    inbox = inbox_of(spark)
    began = time.perf_counter()
    assert inbox.take(0.02) is None
    assert time.perf_counter() - began >= 0.02


def test_a_closed_inbox_is_closed_for_every_call_after_its_messages(spark: Spark) -> None:
    inbox = inbox_of(spark)
    inbox.put_message(EndEpoch(1))
    inbox.close()
    assert inbox.take(0.0) == EndEpoch(1)
    for _ in range(2):
        with pytest.raises(InboxClosedError):
            inbox.take(30.0)


def test_the_end_of_the_stream_closes_the_inbox(spark: Spark) -> None:
    inbox = inbox_of(spark)
    spark.hang_up()
    with pytest.raises(InboxClosedError):
        inbox.take(30.0)


def test_a_slot_that_was_interrupted_in_a_batch_reads_no_more_rows(spark: Spark) -> None:
    class Interrupted(BaseException):
        pass

    class Batches:
        def __iter__(self) -> Iterator[pa.RecordBatch]:
            return self

        def __next__(self) -> pa.RecordBatch:
            raise Interrupted

    inbox = LiveInbox(SparkInput(spark.stream), Batches())
    spark.send(packed([row(0, b"x")]))
    with pytest.raises(Interrupted):
        inbox.take(10.0)
    inbox.put_message(EndEpoch(1))
    assert inbox.take(0.0) == EndEpoch(1)
    with pytest.raises(InboxClosedError):
        inbox.take(10.0)


def test_a_thread_fetches_the_rows_that_only_pyspark_can_read() -> None:
    inbox = ThreadedInbox(iter([packed([row(0, b"x")], pushed=[0]), packed([], pushed=[0])]))
    assert inbox.take(10.0) == [row(0, b"x")]
    with pytest.raises(InboxClosedError):
        inbox.take(10.0)


def test_an_operator_wakes_up_a_slot_that_waits(spark: Spark) -> None:
    inbox = LiveInbox(SparkInput(spark.stream), iter(()))
    threading.Timer(0.05, inbox.wake).start()
    assert inbox.take(30.0) is None
    inbox.put_message(EndEpoch(1))
    taken = [inbox.has_message, inbox.take_message(), inbox.has_message, inbox.take_message()]
    assert taken == [True, EndEpoch(1), False, None]


def test_an_operator_wakes_up_a_slot_that_waits_for_a_thread() -> None:
    ended = threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        ended.wait(30.0)
        yield from ()

    inbox = ThreadedInbox(batches())
    threading.Timer(0.05, inbox.wake).start()
    assert inbox.take(30.0) is None
    inbox.put_message(EndEpoch(1))
    taken = [inbox.has_message, inbox.take_message(), inbox.has_message, inbox.take_message()]
    assert taken == [True, EndEpoch(1), False, None]
    ended.set()
