"""Rounds of live slots: the answers to one epoch plan."""

from __future__ import annotations

import pytest

from firesteel.protocol.execution import EpochPlan
from firesteel.protocol.live_round import LiveRound, LiveRounds
from firesteel.protocol.messages import (
    SlotAck,
    SlotAddress,
    SubtaskAck,
    VertexMetrics,
    encode,
)
from firesteel.protocol.rows import ACK, BufferRow


def _round() -> LiveRound:
    rounds = LiveRounds(frozenset({(0, 0), (1, 0)}))
    return rounds.begin(EpochPlan(epoch=1, controls=()))


def _ack(level: int, metrics: VertexMetrics) -> BufferRow:
    subtask = SubtaskAck(
        vertex=level,
        subtask=0,
        segments={},
        whole={},
        gate=None,
        sources={},
        committables={},
        finished=False,
        watermark=0,
        metrics=metrics,
        user_metrics={},
    )
    ack = SlotAck(SlotAddress("job", 0, level, 0, 1), "here", (subtask,))
    return BufferRow(0, 0, 0, 0, ACK, encode(ack))


@pytest.mark.parametrize(
    ("metrics", "quiet"),
    [
        (VertexMetrics(), True),
        (VertexMetrics(busy_seconds=1.0), True),
        (VertexMetrics(records_in=1), False),
        (VertexMetrics(records_out=1), False),
    ],
)
def test_a_round_in_which_no_record_moves_is_quiet(metrics: VertexMetrics, quiet: bool) -> None:
    running = _round()
    running.take((0, 0), _ack(0, VertexMetrics()))
    running.take((1, 0), _ack(1, metrics))
    assert running.is_over
    assert running.was_quiet is quiet
