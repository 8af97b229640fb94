"""State ledger: handles of the confirmed state of all subtasks, from which slots restore it."""

from __future__ import annotations

from typing import Any

from firesteel.protocol.messages import OperatorHandle, SubtaskAck, SubtaskHandle
from firesteel.state.changelog import Segment, with_segment
from firesteel.state.operator_state import OperatorStates


class StateLedger:
    def __init__(self) -> None:
        self._segments: dict[tuple[int, int, int], list[Segment]] = {}
        self._whole: dict[tuple[int, int, int], bytes] = {}
        self._operator_state: dict[tuple[int, int, int], OperatorStates] = {}
        self._unsaved: dict[tuple[int, int], frozenset[int]] = {}
        self._gates: dict[tuple[int, int], Any] = {}
        self._finished: dict[tuple[int, int], bool] = {}
        # Rows of the last checkpoint, if the last epoch ended with one.
        self._in_flight: dict[tuple[int, int], tuple[Segment, ...]] = {}
        self._nodes: dict[tuple[int, int], set[int]] = {}
        self._restored: dict[tuple[int, int], SubtaskHandle] = {}

    def restore(self, vertex: int, subtask: int, handle: SubtaskHandle) -> None:
        """Begin with the content of a checkpoint, until the first ack of the subtask."""
        self._restored[vertex, subtask] = handle
        for node, operator in handle.operators.items():
            if operator.segments:
                self._segments[vertex, subtask, node] = list(operator.segments)

    def record(self, ack: SubtaskAck) -> None:
        """Add the changes of an epoch. A full segment replaces all segments up to its epoch."""
        self._adopt(ack.vertex, ack.subtask)
        self._gates[ack.vertex, ack.subtask] = ack.gate
        nodes = self._nodes.setdefault((ack.vertex, ack.subtask), set())
        nodes.update(ack.segments, ack.whole, ack.operator_state, ack.unsaved, ack.feedback)
        self._finished[ack.vertex, ack.subtask] = ack.finished
        self._unsaved[ack.vertex, ack.subtask] = ack.unsaved
        self._in_flight[ack.vertex, ack.subtask] = ack.in_flight
        for node, segments in ack.segments.items():
            place = (ack.vertex, ack.subtask, node)
            log = self._segments.get(place, [])
            for segment in segments:
                log = with_segment(log, segment)
            self._segments[place] = log
        for node, feedback in ack.feedback.items():
            self._segments[ack.vertex, ack.subtask, node] = list(feedback.segments)
        for node in nodes:
            self._whole.pop((ack.vertex, ack.subtask, node), None)
        for node, whole in ack.whole.items():
            self._whole[ack.vertex, ack.subtask, node] = whole
        for node, states in ack.operator_state.items():
            self._operator_state[ack.vertex, ack.subtask, node] = states

    def _adopt(self, vertex: int, subtask: int) -> None:
        """Take over restored state that the subtask has not changed."""
        restored = self._restored.pop((vertex, subtask), None)
        if restored is None:
            return
        for node, operator in restored.operators.items():
            self._nodes.setdefault((vertex, subtask), set()).add(node)
            self._operator_state[vertex, subtask, node] = operator.operator_state

    def handle(self, vertex: int, subtask: int) -> SubtaskHandle:
        restored = self._restored.get((vertex, subtask))
        if restored is not None:
            return restored
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
            finished=self._finished.get((vertex, subtask), False),
        )

    def size(self, vertex: int, subtask: int) -> int:
        """Return the bytes of the keyed and whole state of a subtask."""
        nodes = self._nodes.get((vertex, subtask), ())
        return sum(
            sum(segment.size for segment in self._segments.get((vertex, subtask, node), ()))
            + len(self._whole.get((vertex, subtask, node), b""))
            for node in nodes
        )

    def files(self) -> frozenset[str]:
        """Return the files of all segments."""
        logs = (*self._segments.values(), *self._in_flight.values())
        return frozenset(path for log in logs for one in log for path in one.paths())
