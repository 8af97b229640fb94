"""The confirmed state of all subtasks, as handles: what a slot needs to come back."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from firesteel.state.changelog import Segment
from firesteel.state.redistribution import OperatorStates
from firesteel.state.segment_account import with_segment
from firesteel.task.messages import OperatorHandle, SubtaskAck, SubtaskHandle


class StateLedger:
    def __init__(self) -> None:
        self._segments: dict[tuple[int, int, int], list[Segment]] = {}
        self._whole: dict[tuple[int, int, int], bytes] = {}
        self._operator_state: dict[tuple[int, int, int], OperatorStates] = {}
        self._unsaved: dict[tuple[int, int], frozenset[int]] = {}
        self._gates: dict[tuple[int, int], Any] = {}
        self._nodes: dict[tuple[int, int], set[int]] = {}

    def record(self, ack: SubtaskAck) -> None:
        """Add what an epoch changed. A full segment replaces those up to its own epoch."""
        self._gates[ack.vertex, ack.subtask] = ack.gate
        nodes = self._nodes.setdefault((ack.vertex, ack.subtask), set())
        nodes.update(ack.segments, ack.whole, ack.operator_state, ack.unsaved)
        self._unsaved[ack.vertex, ack.subtask] = ack.unsaved
        for node, segments in ack.segments.items():
            place = (ack.vertex, ack.subtask, node)
            before = after = self._segments.get(place, [])
            for segment in segments:
                after = with_segment(after, segment)
            self._segments[place] = after
            # Segments may have files in common.
            _delete(_paths(before) - _paths(after))
        for node, whole in ack.whole.items():
            self._whole[ack.vertex, ack.subtask, node] = whole
        for node, states in ack.operator_state.items():
            self._operator_state[ack.vertex, ack.subtask, node] = states

    def handle(self, vertex: int, subtask: int) -> SubtaskHandle:
        nodes = self._nodes.get((vertex, subtask), ())
        return SubtaskHandle(
            operators={
                node: OperatorHandle(
                    segments=tuple(self._segments.get((vertex, subtask, node), ())),
                    whole=self._whole.get((vertex, subtask, node)),
                    operator_state=self._operator_state.get((vertex, subtask, node), {}),
                    unsaved=node in self._unsaved.get((vertex, subtask), ()),
                )
                for node in nodes
            },
            gate=self._gates.get((vertex, subtask)),
        )


def _paths(segments: list[Segment]) -> set[str]:
    return {path for segment in segments for path in segment.paths()}


def _delete(paths: set[str]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            Path(path).unlink()
