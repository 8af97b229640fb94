"""The function of mapInArrow that runs one level above the clock's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from firesteel.spark.slot_task import SlotTask
from firesteel.task.messages import SlotAddress, decode
from firesteel.task.rows import CONTROL, HEADER, rows_of


class LevelFunction:
    """Finds out from its first rows which slot and epoch it works for."""

    def __init__(self, level: int, task: SlotTask) -> None:
        self._level = level
        self._task = task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        remaining = iter(batches)
        seen: list[pa.RecordBatch] = []
        for batch in remaining:
            seen.append(batch)
            address = self._find_address(batch)
            if address is not None:
                yield from self._task.run(address, chain(seen, remaining), None)
                return

    def _find_address(self, batch: pa.RecordBatch) -> SlotAddress | None:
        """Every upstream slot sends a header first; only rows from DataFrames may come before."""
        kinds = batch.column("kind").to_pylist()
        if HEADER not in kinds and CONTROL not in kinds:
            return None
        for row in rows_of(batch):
            if row.edge == self._level and row.kind in (HEADER, CONTROL):
                message = decode(row.payload)
                address: SlotAddress = message if row.kind == HEADER else message.address
                return replace(address, level=self._level, slot=row.target)
        return None
