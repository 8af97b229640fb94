"""The inbox of a live slot: the rows that Spark brings, and the messages of the driver.

The slot itself reads Spark's rows, when it has time for them. So rows that it has no time for wait
in Spark, no thread competes with it for the interpreter, and nothing is handed from thread to
thread. Only PySpark's own worker daemon, which executors of a cluster use, keeps the stream to
itself. There a thread fetches the rows.
"""

from __future__ import annotations

import fcntl
import logging
import os
import select
import socket
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from queue import Empty, SimpleQueue
from typing import Any, ClassVar

import pyarrow as pa

from firesteel.protocol.messages import EndEpoch, SlotControl
from firesteel.protocol.rows import unpacked
from firesteel.task.live_slot import InboxClosedError, Rows

_log = logging.getLogger("firesteel")

Message = SlotControl | EndEpoch

# Batches of rows that a thread fetches ahead. Then Spark waits, and with it the slots before.
_ROOM = 16
_CHUNK_BYTES = 1 << 18
# An operator has something to do, and Spark brings no more rows.
_ROUSED, _ENDED = "roused", "ended"


class SparkInput:
    """The stream from Spark to this worker. ``has_bytes`` answers without waiting.

    Arrow reads it like a file.
    """

    closed = False
    _of_task: ClassVar[BufferedReader[Any] | None] = None

    @classmethod
    def offer(cls, stream: BufferedReader[Any]) -> None:
        """Give the stream to the task that this worker runs next."""
        cls._of_task = stream

    @classmethod
    def of_task(cls) -> SparkInput | None:
        """Return the stream of the running task, or None if PySpark keeps it to itself."""
        stream, cls._of_task = cls._of_task, None
        return None if stream is None else cls(stream)

    def __init__(self, stream: BufferedReader[Any]) -> None:
        self.fd = stream.fileno()
        self._raw = stream.raw
        self._chunk = memoryview(bytearray(_CHUNK_BYTES))
        self._begin = 0
        self._end = _take_buffered(stream, self._chunk)

    @property
    def has_bytes(self) -> bool:
        """True if bytes of Spark were read that Arrow has not asked for yet."""
        return self._begin < self._end

    def read(self, size: int = -1) -> bytes | bytearray:
        begin, end = self._begin, self._end
        if end - begin >= size:
            self._begin = begin + size
            return self._chunk[begin : begin + size].tobytes()
        found = bytearray(size)
        view = memoryview(found)
        done = end - begin
        view[:done] = self._chunk[begin:end]
        self._begin = self._end = 0
        while done < size:
            missing = size - done
            if missing >= _CHUNK_BYTES:
                count = self._raw.readinto(view[done:])
            else:
                count = self._raw.readinto(self._chunk)
            if not count:
                # Spark has closed the connection.
                return found[:done]
            if missing < _CHUNK_BYTES:
                taken = min(missing, count)
                view[done : done + taken] = self._chunk[:taken]
                self._begin, self._end = taken, count
                done += taken
            else:
                done += count
        return found

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of rows, as PySpark gives them to a function."""
        for batch in pa.ipc.open_stream(self):
            yield pa.RecordBatch.from_struct_array(batch.column(0))


def _take_buffered(stream: BufferedReader[Any], into: memoryview) -> int:
    """Take the bytes that the stream has read ahead of its last reader. Return their number."""
    os.set_blocking(stream.fileno(), False)
    try:
        buffered = len(stream.peek())
    finally:
        os.set_blocking(stream.fileno(), True)
    return stream.readinto1(into[:buffered]) if buffered else 0


class LiveInbox:
    """Messages, which a thread adds, and the rows of the stream from Spark."""

    def __init__(self, spark: SparkInput, batches: Iterator[pa.RecordBatch]) -> None:
        self._spark = spark
        self._batches = batches
        self._messages: SimpleQueue[Message | Exception] = SimpleQueue()
        self._is_closed = False
        # The slot was interrupted while it read a batch. Nothing can be read any more.
        self._is_broken = False
        # An operator has something to do.
        self._is_roused = False
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._sources = [self._woken.fileno(), spark.fd]

    @property
    def usage(self) -> float:
        """The part of the connection's buffer that is full. Any thread may ask."""
        waiting = bytearray(4)
        with suppress(OSError):
            fcntl.ioctl(self._spark.fd, termios.FIONREAD, waiting)
        return min(1.0, int.from_bytes(waiting, sys.byteorder) / _CHUNK_BYTES)

    def put_message(self, message: Message | Exception) -> None:
        """Add a message, or an error that ``take`` raises."""
        self._messages.put(message)
        self._send_byte()

    def close(self) -> None:
        self._is_closed = True
        self._send_byte()

    def wake(self) -> None:
        self._is_roused = True
        self._send_byte()

    def _send_byte(self) -> None:
        # If there is no room for one more byte, the slot wakes up anyway.
        with suppress(BlockingIOError):
            self._waker.send(b"\0")

    @property
    def has_message(self) -> bool:
        return self._is_closed or not self._messages.empty()

    def take_message(self) -> Message | None:
        if not self._messages.empty():
            message = self._messages.get()
            if isinstance(message, Exception):
                raise message
            return message
        if self._is_closed:
            raise InboxClosedError
        return None

    def take(self, seconds: float) -> Rows | Message | None:
        while True:
            message = self.take_message()
            if message is not None:
                return message
            if self._spark.has_bytes and not self._is_broken:
                return self._read_rows()
            # Other than poll, it waits for fractions of a millisecond.
            ready, _, _ = select.select(self._sources, (), (), max(0.0, seconds))
            if not ready:
                return None
            if self._sources[0] not in ready:
                return self._read_rows()
            self._woken.recv(4096)
            if self._is_roused:
                self._is_roused = False
                return None

    def _read_rows(self) -> Rows:
        if self._is_broken:
            raise InboxClosedError
        self._is_broken = True
        try:
            batch = next(self._batches, None)
        except (OSError, pa.ArrowException) as error:
            _log.debug("the input of a live slot has ended: %s", error)
            batch = None
        if batch is None:
            # Spark has ended the task, and reports why.
            raise InboxClosedError
        self._is_broken = False
        return unpacked(batch)


class ThreadedInbox:
    """An inbox for rows that only PySpark can read. A thread fetches them."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._messages: SimpleQueue[Message | Exception] = SimpleQueue()
        self._is_closed = False
        # Lists of rows, None to look at the messages, and reasons to stop waiting.
        self._items: SimpleQueue[Rows | str | None] = SimpleQueue()
        self._room = threading.Semaphore(_ROOM)
        threading.Thread(target=self._fetch, args=(batches,), daemon=True).start()

    def _fetch(self, batches: Iterator[pa.RecordBatch]) -> None:
        try:
            for batch in batches:
                rows = unpacked(batch)
                if rows:
                    self._room.acquire()
                    self._items.put(rows)
        except Exception as error:  # noqa: BLE001 - Spark has ended the task, and reports why
            _log.debug("the input of a live slot has ended: %s", error)
        finally:
            self._items.put(_ENDED)

    @property
    def usage(self) -> float:
        """The part of the queue that is full. Any thread may ask."""
        return min(1.0, self._items.qsize() / _ROOM)

    def put_message(self, message: Message | Exception) -> None:
        self._messages.put(message)
        self._items.put(None)

    def close(self) -> None:
        self._is_closed = True
        self._items.put(None)

    def wake(self) -> None:
        self._items.put(_ROUSED)

    @property
    def has_message(self) -> bool:
        return self._is_closed or not self._messages.empty()

    def take_message(self) -> Message | None:
        if not self._messages.empty():
            message = self._messages.get()
            if isinstance(message, Exception):
                raise message
            return message
        if self._is_closed:
            raise InboxClosedError
        return None

    def take(self, seconds: float) -> Rows | Message | None:
        while True:
            message = self.take_message()
            if message is not None:
                return message
            if seconds <= 0.0 and self._items.empty():
                return None
            try:
                item = self._items.get(timeout=max(seconds, 0.0))
            except Empty:
                return None
            if isinstance(item, list):
                self._room.release()
                return item
            if item == _ROUSED:
                return None
            if item == _ENDED:
                self._is_closed = True
