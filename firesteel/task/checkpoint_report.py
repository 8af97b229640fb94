"""What a subtask reports with a checkpoint, besides its state: in words, for metadata and history."""

from __future__ import annotations

import time
from collections.abc import Mapping

from firesteel.checkpoint.metadata import StateDescription
from firesteel.checkpoint.state_descriptions import describe_tables
from firesteel.checkpoint.tasks import TaskTiming
from firesteel.common.typeinfo import TypeInformation
from firesteel.task.barriers import BarrierTracker
from firesteel.task.operators.base import Operator

Operators = Mapping[int, Operator]


def described_tables(
    operators: Operators, key_types: Mapping[int, TypeInformation | None]
) -> dict[int, tuple[StateDescription, ...]]:
    return {
        node_id: describe_tables(tables, key_types.get(node_id))
        for node_id, operator in operators.items()
        if (tables := operator.context.keyed_state.descriptions())
    }


def sent_watermarks(operators: Operators) -> dict[int, int]:
    """What each operator has sent on last."""
    return {
        node_id: operator.emitted_watermark(operator.context.clock.watermark)
        for node_id, operator in operators.items()
    }


def timing_of(
    operators: Operators, barriers: BarrierTracker, started: float, since_trigger: float
) -> TaskTiming:
    """Of the snapshot that was begun at ``started`` and is done now, so long after its trigger."""
    now = time.perf_counter()
    first_barrier = started if barriers.first_at is None else barriers.first_at
    return TaskTiming(
        start_delay=max(0.0, since_trigger - (now - first_barrier)),
        alignment=barriers.alignment_seconds,
        sync=now - started,
        asynchronous=sum(
            operator.context.keyed_state.take_background_seconds()
            for operator in operators.values()
        ),
    )
