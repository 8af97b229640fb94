"""The task of a live slot: connects the slot to Spark's rows and to the driver.

The task runs the slot and gives its rows to Spark. A thread receives the messages of the driver.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection

import pyarrow as pa
from pyspark import TaskContext

from firesteel.logs import ProcessLogs
from firesteel.processes import release_memory
from firesteel.protocol.driver_address import DriverAddress
from firesteel.protocol.messages import SlotControl, decode, encode
from firesteel.protocol.program import PackedProgram
from firesteel.protocol.reports import CREDITS_MARK, SlotQuestion
from firesteel.protocol.rows import CREDITS, BufferRow, packed
from firesteel.spark.live_inbox import LiveInbox, SparkInput, ThreadedInbox
from firesteel.spark.slot_monitor import SlotMonitor
from firesteel.spark.slot_task import SlotTask, spare_imports, working_directory
from firesteel.task.live_slot import InboxClosedError, LiveSlot, UnloadedLiveSlot
from firesteel.usercode.failures import USER_ERRORS, InterruptedSlotError

_log = logging.getLogger("firesteel")

# A thread that waits for the interpreter gets it after this time, so that messages reach a busy
# slot in time.
_SWITCH_SECONDS = 0.002
# Spark ends a task, and mostly its process, within this time after the driver has ended the slot.
_END_SECONDS = 10.0
# A function that blocks for longer when its job is canceled by force ends its process.
_FORCE_SECONDS = 3.0


class LiveLevel:
    """Runs the slots of a level, one per Spark task."""

    def __init__(self, level: int, task: SlotTask, driver: DriverAddress) -> None:
        self._level = level
        self._task = task
        self._driver = driver

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_imports()
        # An earlier slot in this process has freed memory.
        release_memory()
        # Records are many and are rarely part of cycles, so the collector runs less often.
        gc.set_threshold(100_000, 20, 50)
        sys.setswitchinterval(_SWITCH_SECONDS)
        stream = SparkInput.of_task()
        incoming = iter(batches) if stream is None else stream.batches()
        if self._level == 0:
            # The row that starts this task. There is no other.
            next(incoming)
        context = TaskContext.get()
        assert context is not None
        inbox = ThreadedInbox(incoming) if stream is None else LiveInbox(stream, incoming)
        with self._driver.connect() as connection:
            connection.send_bytes(encode((self._level, context.partitionId())))
            yield from self._run(context.partitionId(), inbox, connection)
        if isinstance(inbox, ThreadedInbox) and inbox.wait_for_end(_END_SECONDS):
            # PySpark's own daemon would write to the connection, which Spark has closed, and report
            # the error. There is nothing left to do for this process.
            os._exit(0)

    def _run(
        self, index: int, inbox: LiveInbox | ThreadedInbox, connection: Connection
    ) -> Iterator[pa.RecordBatch]:
        sending = threading.Lock()

        def send(message: bytes) -> None:
            # The slot sends rows, and its monitor sends reports.
            with sending:
                connection.send_bytes(message)

        def to_driver(row: BufferRow) -> None:
            try:
                if row.kind == CREDITS:
                    send(CREDITS_MARK + row.payload)
                else:
                    send(encode(tuple(row)))
            except OSError:
                # The driver has ended the attempt, or is gone.
                raise InboxClosedError from None

        program = self._task.load_program()
        slot = self._make_slot(program, index, to_driver)
        # Targets of rows that Spark keeps until the next one arrives.
        waiting: dict[int, None] = {}
        with (
            working_directory(program.placed.working_directory),
            ProcessLogs(slot.title, owned=True) as logs,
        ):
            monitor = SlotMonitor(slot, inbox, logs, send)
            _Messages(connection, inbox, (self._level, index), monitor).start()
            monitor.start()
            for rows in slot.run(inbox):
                waiting |= dict.fromkeys(row.target for row in rows)
                if slot.more_follows:
                    batch = packed(rows)
                elif waiting:
                    batch = packed(rows, waiting)
                    waiting.clear()
                else:
                    continue
                slot.activity.wait_for_output()
                yield batch
                slot.activity.work()

    def _make_slot(
        self, program: PackedProgram, index: int, to_driver: Callable[[BufferRow], None]
    ) -> LiveSlot | UnloadedLiveSlot:
        try:
            return LiveSlot(
                program.unpack(),
                self._level,
                index,
                to_driver,
                program.unpack,
            )
        except USER_ERRORS as error:
            return UnloadedLiveSlot(error, program, self._level, index, to_driver)


class _Messages(threading.Thread):
    """Puts the messages of the driver into the inbox of the thread that creates it."""

    def __init__(
        self,
        connection: Connection,
        inbox: LiveInbox | ThreadedInbox,
        place: tuple[int, int],
        monitor: SlotMonitor,
    ) -> None:
        super().__init__(name="firesteel-messages", daemon=True)
        self._monitor = monitor
        self._place = place
        self._connection = connection
        self._inbox = inbox
        self._worker = threading.get_ident()

    def run(self) -> None:
        try:
            while True:
                received = self._connection.recv_bytes()
                try:
                    message = decode(received)
                except Exception as error:  # noqa: BLE001 - it fails the slot; a split may be anything
                    self._inbox.put_message(error)
                    continue
                if isinstance(message, SlotQuestion):
                    self._monitor.ask(message)
                    continue
                if isinstance(message, SlotControl) and message.address.by_force:
                    self._interrupt()
                self._inbox.put_message(message)
        except (EOFError, OSError):
            # The attempt is over.
            self._inbox.close()
            self._monitor.stop()

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
