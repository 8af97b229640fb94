"""The task of a live slot: connects the slot to Spark's rows and to the driver.

Two threads fill the slot's mailbox: one with the rows that Spark brings, one with the messages of
the driver. The task itself runs the slot and gives its rows to Spark.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection
from queue import Empty, SimpleQueue

import pyarrow as pa
from pyspark import TaskContext

from firesteel.protocol.messages import EndEpoch, SlotControl, decode, encode
from firesteel.protocol.program import PackedProgram
from firesteel.protocol.rows import PUSH, BufferRow, rows_of, to_record_batch
from firesteel.spark.slot_task import SlotTask, working_directory
from firesteel.task.live_slot import InboxClosedError, LiveSlot, Rows, UnloadedLiveSlot
from firesteel.usercode.failures import USER_ERRORS, InterruptedSlotError

_log = logging.getLogger("firesteel")

# Batches of rows that may wait in the mailbox. Then Spark waits, and with it the slots before.
_ROOM = 16
# A thread that waits for the interpreter gets it after this time, so that rows and timers of a
# busy slot are not late.
_SWITCH_SECONDS = 0.002
# A function that blocks for longer when its job is canceled by force ends its process.
_FORCE_SECONDS = 3.0
_CLOSED = object()


class Mailbox:
    """The inbox of a live slot. Rows wait for room, messages do not."""

    def __init__(self) -> None:
        self._items: SimpleQueue[object] = SimpleQueue()
        self._room = threading.Semaphore(_ROOM)

    def put_rows(self, rows: Rows) -> None:
        self._room.acquire()
        self._items.put(rows)

    def put_message(self, message: SlotControl | EndEpoch) -> None:
        self._items.put(message)

    def close(self) -> None:
        self._items.put(_CLOSED)

    def take(self, seconds: float) -> Rows | SlotControl | EndEpoch | None:
        if seconds <= 0.0 and self._items.empty():
            return None
        try:
            item = self._items.get(timeout=max(seconds, 0.0))
        except Empty:
            return None
        if isinstance(item, list):
            self._room.release()
            return item
        if item is _CLOSED:
            # For every later call.
            self.close()
            raise InboxClosedError
        assert isinstance(item, SlotControl | EndEpoch)
        return item


@dataclass(frozen=True, slots=True)
class DriverAddress:
    """The socket of the driver: a path, or a host and a port. ``token`` opens it."""

    address: str | tuple[str, int]
    token: str

    @property
    def family(self) -> str:
        return "AF_UNIX" if isinstance(self.address, str) else "AF_INET"

    def connect(self) -> Connection:
        return Client(self.address, family=self.family, authkey=self.token.encode())


class LiveLevel:
    """Runs the slots of a level, one per Spark task."""

    def __init__(self, level: int, task: SlotTask, driver: DriverAddress) -> None:
        self._level = level
        self._task = task
        self._driver = driver

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Records are many and are rarely part of cycles, so the collector runs less often.
        gc.freeze()
        gc.set_threshold(100_000, 20, 50)
        sys.setswitchinterval(_SWITCH_SECONDS)
        incoming = iter(batches)
        if self._level == 0:
            # The row that starts this task.
            next(incoming)
        context = TaskContext.get()
        assert context is not None
        with self._driver.connect() as connection:
            connection.send_bytes(encode((self._level, context.partitionId())))
            yield from self._run(context.partitionId(), incoming, connection)

    def _run(
        self, index: int, incoming: Iterator[pa.RecordBatch], connection: Connection
    ) -> Iterator[pa.RecordBatch]:
        def to_driver(row: BufferRow) -> None:
            try:
                connection.send_bytes(encode(tuple(row)))
            except OSError:
                # The driver has ended the attempt, or is gone.
                raise InboxClosedError from None

        mailbox = Mailbox()
        packed = self._task.load_program()
        slot = self._make_slot(packed, index, to_driver)
        _Messages(connection, mailbox, (self._level, index)).start()
        threading.Thread(target=_bring_rows, args=(incoming, mailbox), daemon=True).start()
        with working_directory(packed.placed.working_directory):
            for rows in slot.run(mailbox):
                if not rows:
                    continue
                # Spark hands on a row when the next one for the same target arrives.
                pushed = dict.fromkeys(row.target for row in rows)
                rows += [BufferRow(target, 0, 0, 0, PUSH, b"") for target in pushed]
                yield to_record_batch(rows)

    def _make_slot(
        self, packed: PackedProgram, index: int, to_driver: Callable[[BufferRow], None]
    ) -> LiveSlot | UnloadedLiveSlot:
        try:
            return LiveSlot(
                packed.unpack(),
                self._level,
                index,
                to_driver,
                packed.unpack,
            )
        except USER_ERRORS as error:
            return UnloadedLiveSlot(error, packed, self._level, index, to_driver)


class _Messages(threading.Thread):
    """Puts the messages of the driver into the mailbox of the thread that creates it."""

    def __init__(self, connection: Connection, mailbox: Mailbox, place: tuple[int, int]) -> None:
        super().__init__(name="firesteel-messages", daemon=True)
        self._place = place
        self._connection = connection
        self._mailbox = mailbox
        self._worker = threading.get_ident()

    def run(self) -> None:
        try:
            while True:
                message = decode(self._connection.recv_bytes())
                if isinstance(message, SlotControl) and message.address.by_force:
                    self._interrupt()
                self._mailbox.put_message(message)
        except (EOFError, OSError):
            # The attempt is over.
            self._mailbox.close()

    def _interrupt(self) -> None:
        """Interrupt the function that runs. If it blocks, the process ends without it."""
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(self._worker), ctypes.py_object(InterruptedSlotError)
        )
        timer = threading.Timer(_FORCE_SECONDS, self._give_up)
        timer.daemon = True
        timer.start()

    def _give_up(self) -> None:
        _log.warning(
            "level %d, slot %d: a function of the canceled job does not return, so its process ends",
            *self._place,
        )
        os._exit(1)


def _bring_rows(incoming: Iterator[pa.RecordBatch], mailbox: Mailbox) -> None:
    try:
        for batch in incoming:
            rows = [row for row in rows_of(batch) if row.kind != PUSH]
            if rows:
                mailbox.put_rows(rows)
    except Exception as error:  # noqa: BLE001 - Spark has ended the task, and reports why
        _log.debug("the input of a live slot has ended: %s", error)
    finally:
        mailbox.close()
