"""What reaches the driver at the end of an epoch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from firesteel import pickling
from firesteel.task.messages import SlotAck, SlotFailure, decode
from firesteel.task.rows import ACK, FAILURE, OUTPUT, BufferRow


@dataclass(slots=True)
class DriverRows:
    """``outputs`` are pairs of a node and its lines or records."""

    acks: list[SlotAck] = field(default_factory=list)
    failures: list[SlotFailure] = field(default_factory=list)
    outputs: list[tuple[int, list[Any]]] = field(default_factory=list)

    @staticmethod
    def sort(rows: Iterable[BufferRow]) -> DriverRows:
        result = DriverRows()
        for row in rows:
            if row.kind == ACK:
                result.acks.append(decode(row.payload))
            elif row.kind == FAILURE:
                result.failures.append(decode(row.payload))
            elif row.kind == OUTPUT:
                result.outputs.append((row.edge, pickling.loads(row.payload)))
            else:
                raise ValueError(f"a row of kind {row.kind} reached the driver")
        return result
