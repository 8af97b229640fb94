"""The confirmed state of all subtasks, as handles: what a slot needs to come back."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from firesteel.state.changelog import Segment
from firesteel.task.messages import OperatorHandle, SubtaskAck, SubtaskHandle


class StateLedger:
    def __init__(self) -> None:
        self._segments: dict[tuple[int, int, int], list[Segment]] = {}
        self._whole: dict[tuple[int, int, int], Any] = {}
        self._gates: dict[tuple[int, int], Any] = {}
        self._nodes: dict[tuple[int, int], set[int]] = {}

    def record(self, ack: SubtaskAck) -> None:
        """Add what an epoch changed. A full segment makes the earlier ones superfluous."""
        self._gates[ack.vertex, ack.subtask] = ack.gate
        nodes = self._nodes.setdefault((ack.vertex, ack.subtask), set())
        nodes.update(ack.segments, ack.whole)
        for node, segment in ack.segments.items():
            log = self._segments.setdefault((ack.vertex, ack.subtask, node), [])
            if segment.full:
                for old in log:
                    _delete(old)
                log.clear()
            log.append(segment)
        for node, whole in ack.whole.items():
            self._whole[ack.vertex, ack.subtask, node] = whole

    def handle(self, vertex: int, subtask: int) -> SubtaskHandle:
        nodes = self._nodes.get((vertex, subtask), ())
        return SubtaskHandle(
            operators={
                node: OperatorHandle(
                    segments=tuple(self._segments.get((vertex, subtask, node), ())),
                    whole=self._whole.get((vertex, subtask, node)),
                )
                for node in nodes
            },
            gate=self._gates.get((vertex, subtask)),
        )


def _delete(segment: Segment) -> None:
    if segment.path is not None:
        with contextlib.suppress(FileNotFoundError):
            Path(segment.path).unlink()
