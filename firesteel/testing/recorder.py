"""Where the results of an operator under test go."""

from __future__ import annotations

from typing import Any

from firesteel.graph.partitioning import FORWARD
from firesteel.graph.stream_graph import StreamEdge
from firesteel.task.record_writers import RecordWriter


class Recorder(RecordWriter):
    """Stands where a record writer stands, and keeps what comes."""

    def __init__(self, node_id: int) -> None:
        self.edge = StreamEdge(id=-1, source=node_id, target=-1, partitioning=FORWARD)
        self.values: list[Any] = []
        self.timestamps: list[int | None] = []
        self.sides: dict[str, list[Any]] = {}
        self.watermarks: list[int] = []
        self.idleness: list[bool] = []
        self.records_out = 0
        self.bytes_out = 0

    def begin_epoch(self, epoch: int) -> None:
        self.records_out = 0

    def emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        self.values += values
        self.timestamps += timestamps if timestamps is not None else [None] * len(values)
        self.records_out += len(values)

    def watermark(self, watermark: int) -> None:
        self.watermarks.append(watermark)

    def idle(self, idle: bool) -> None:
        self.idleness.append(idle)

    def end_epoch(self, *, finished: bool) -> None:
        """Nothing is buffered here."""


class EveryTag(dict[str, Any]):
    """Whatever side output is asked for, somebody reads it."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def get(self, key: str, default: Any = None) -> Any:
        values = self._recorder.sides.setdefault(key, [])
        return lambda results, timestamps: values.extend(results)
