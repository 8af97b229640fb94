"""The inbox of a live slot: the rows that Spark brings, and the messages of the driver.

The slot itself reads Spark's rows, when it has time for them. So rows that it has no time for wait
in Spark, no thread competes with it for the interpreter, and nothing is handed from thread to
thread. Only PySpark's own worker daemon, which runs in a session of the user, keeps the stream to
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
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BufferedReader
from queue import SimpleQueue
from typing import Any, ClassVar

import pyarrow as pa

from firesteel.protocol.messages import Message
from firesteel.protocol.rows import unpacked
from firesteel.task.live_slot import InboxClosedError, Rows

_log = logging.getLogger("firesteel")

# Batches of rows that a thread fetches ahead. Then Spark waits, and with it the slots before.
_ROOM = 16
_CHUNK_BYTES = 1 << 18


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

    def take_message(self, seconds: float = 0.0) -> Message | None:
        message = self._next_message()
        if message is not None or seconds <= 0.0:
            return message
        item = self._wait(self._sources[:1], seconds)
        assert not isinstance(item, list)
        return item

    def take(self, seconds: float) -> Rows | Message | None:
        message = self._next_message()
        if message is not None:
            return message
        if self._spark.has_bytes and not self._is_broken:
            return self._read_rows()
        return self._wait(self._sources, seconds)

    def _next_message(self) -> Message | None:
        if not self._messages.empty():
            message = self._messages.get()
            if isinstance(message, Exception):
                raise message
            return message
        if self._is_closed:
            raise InboxClosedError
        return None

    def _wait(self, sources: list[int], seconds: float) -> Rows | Message | None:
        while True:
            # Other than poll, it waits for fractions of a millisecond.
            ready, _, _ = select.select(sources, (), (), max(0.0, seconds))
            if not ready:
                return None
            if sources[0] not in ready:
                return self._read_rows()
            self._woken.recv(4096)
            if self._is_roused:
                self._is_roused = False
                return None
            message = self._next_message()
            if message is not None:
                return message

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
        self._changed = threading.Condition()
        self._messages: deque[Message | Exception] = deque()
        self._rows: deque[Rows] = deque()
        self._is_closed = False
        # An operator has something to do.
        self._is_roused = False
        self._input_has_ended = threading.Event()
        threading.Thread(target=self._fetch, args=(batches,), daemon=True).start()

    def _fetch(self, batches: Iterator[pa.RecordBatch]) -> None:
        try:
            for batch in batches:
                rows = unpacked(batch)
                if rows:
                    self._put_rows(rows)
        except Exception as error:  # noqa: BLE001 - Spark has ended the task, and reports why
            _log.debug("the input of a live slot has ended: %s", error)
        finally:
            self._input_has_ended.set()
            self.close()

    def wait_for_end(self, seconds: float) -> bool:
        """Wait until Spark has closed the connection. Return False if it has not."""
        return self._input_has_ended.wait(seconds)

    def _put_rows(self, rows: Rows) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._rows) < _ROOM or self._is_closed)
            self._rows.append(rows)
            self._changed.notify_all()

    @property
    def usage(self) -> float:
        """The part of the queue that is full. Any thread may ask."""
        return min(1.0, len(self._rows) / _ROOM)

    def put_message(self, message: Message | Exception) -> None:
        with self._changed:
            self._messages.append(message)
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def wake(self) -> None:
        with self._changed:
            self._is_roused = True
            self._changed.notify_all()

    @property
    def has_message(self) -> bool:
        return self._is_closed or bool(self._messages)

    def take_message(self, seconds: float = 0.0) -> Message | None:
        if seconds > 0.0:
            self._wait(lambda: self.has_message or self._is_roused, seconds)
        return self._next_message()

    def take(self, seconds: float) -> Rows | Message | None:
        if seconds > 0.0:
            self._wait(lambda: self.has_message or self._is_roused or bool(self._rows), seconds)
        if self._rows and not self._messages:
            with self._changed:
                rows = self._rows.popleft()
                self._changed.notify_all()
            return rows
        return self._next_message()

    def _wait(self, has_come: Callable[[], bool], seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(has_come, seconds)
            self._is_roused = False

    def _next_message(self) -> Message | None:
        if self._messages:
            message = self._messages.popleft()
            if isinstance(message, Exception):
                raise message
            return message
        if self._is_closed:
            raise InboxClosedError
        return None
