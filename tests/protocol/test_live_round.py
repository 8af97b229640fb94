"""Rounds of live slots: the answers to one epoch plan."""

from __future__ import annotations

import pytest

from firesteel.protocol.execution import EpochPlan
from firesteel.protocol.live_round import LiveRound, LiveRounds
from firesteel.protocol.messages import (
    OperatorHandle,
    ReadBudget,
    SlotAck,
    SlotAddress,
    SlotControl,
    SubtaskAck,
    SubtaskHandle,
    VertexMetrics,
    encode,
)
from firesteel.protocol.rows import ACK, BufferRow
from firesteel.state.operator_state import OperatorState, Redistribution


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


def test_controls_have_state_only_for_slots_that_have_none() -> None:
    """Rules of 1 MB in the state of two slots."""
    rules = OperatorState(Redistribution.BROADCAST, (bytes(1_000_000),), "[]")
    handles = {3: SubtaskHandle({4: OperatorHandle(operator_state={"rules": rules})})}

    def plan(epoch: int, *, closing: bool = False) -> EpochPlan:
        controls = tuple(
            SlotControl(SlotAddress("job", 0, level, 0, epoch), ReadBudget(1, 1.0), handles)
            for level in range(2)
        )
        return EpochPlan(epoch, controls, closing=closing)

    rounds = LiveRounds(frozenset({(0, 0), (1, 0)}))
    sizes = [
        sum(len(encode(control)) for _, control in rounds.begin(one).controls)
        for one in (plan(1), plan(2), plan(3), plan(4, closing=True))
    ]
    # The slots restore the first one. In the last epoch, sinks may have to be restored.
    assert min(sizes[0], sizes[3]) > 2_000_000
    assert max(sizes[1], sizes[2]) < 20_000


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
