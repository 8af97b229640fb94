"""What stands in for a slot that could not be built, because its program could not be loaded."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from firesteel.errors import FiresteelError, JobExecutionError
from firesteel.task.confirmed_runs import ConfirmedRuns, new_run_id
from firesteel.task.messages import (
    SlotAck,
    SlotAddress,
    SlotControl,
    SlotFailure,
    decode,
    encode,
)
from firesteel.task.rows import (
    ACK,
    CONTROL,
    FAILURE,
    FOR_DRIVER,
    HEADER,
    BufferRow,
    RowBatcher,
)
from firesteel.task.slot import host_name


class UnloadedSlot:
    """Tells the driver why in every epoch, and has nothing to close.

    Records are not passed on: a later level that misses them fails too, but the driver takes the
    failure of the first level for the cause.
    """

    def __init__(self, error: BaseException, job_name: str) -> None:
        self._error = error
        self._job_name = job_name
        self.closed = False

    def run_epoch(
        self,
        address: SlotAddress,
        rows: Iterable[BufferRow],
        control: SlotControl | None = None,
        *,
        last: bool = False,
        raise_errors: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """As a slot's: all input is taken in, and what is for others passed on."""
        if raise_errors:
            raise self._explained(address)
        batcher = RowBatcher()
        for row in rows:
            addressed = row.kind in (CONTROL, HEADER)
            if row.kind in FOR_DRIVER or (addressed and row.edge != address.level):
                batcher.add(row)
            elif row.kind == CONTROL:
                control = decode(row.payload)
            if batcher.is_full():
                yield batcher.take()
        batcher.add(self._answer(address, control, last=last))
        yield batcher.take()

    def _answer(
        self, address: SlotAddress, control: SlotControl | None, *, last: bool
    ) -> BufferRow:
        self.closed = last or (control is not None and control.close)
        if control is None or last or control.has_work:
            failure = SlotFailure(address, self._explained(address))
            return BufferRow(address.slot, 0, 0, 0, FAILURE, encode(failure))
        ack = SlotAck(
            address=replace(address, confirmed_runs=ConfirmedRuns()),
            host=host_name(),
            subtasks=(),
            run_id=new_run_id(),
        )
        return BufferRow(address.slot, 0, 0, 0, ACK, encode(ack))

    def _explained(self, address: SlotAddress) -> FiresteelError:
        if isinstance(self._error, FiresteelError):
            return self._error
        text = "".join(traceback.format_exception(self._error)).rstrip()
        return JobExecutionError(
            f"{text}\nJob '{self._job_name}' failed: the error above came when its program was "
            f"loaded in level {address.level}, slot {address.slot}",
            job_name=self._job_name,
        )

    def close_quietly(self) -> list[Exception]:
        self.closed = True
        return []
