"""A task that runs again keeps nothing of the earlier instances of user functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.datastream.functions import CheckpointedFunction, MapFunction
from firesteel.datastream.state import ListStateDescriptor
from firesteel.errors import UnsavedStateError
from firesteel.testing import Fault, JobHarness, Pause, ScriptedSource

MAP = (1, 0)


class Seen(MapFunction):
    """Emits what it has in memory."""

    def open(self, runtime_context: Any) -> None:
        self.seen: list[Any] = []

    def map(self, value: Any) -> Any:
        self.seen.append(value)
        return list(self.seen)


def _job(function: Any, script: list[Any]) -> JobHarness:
    def program(env: Any) -> Any:
        stream = env.from_source(ScriptedSource(script), None, "s")
        return stream.rebalance().map(function).set_parallelism(1)

    return JobHarness(program, records_per_epoch=2)


@pytest.mark.parametrize("fault", [Fault.RETRY, Fault.LOSE_HOST_LATE])
def test_what_a_discarded_attempt_left_in_a_function_does_not_stay(fault: Fault) -> None:
    harness = _job(Seen(), [1, 2, 3, 4])
    harness.run({2: {MAP: fault}})
    # As after a restart in Flink: a new function, which has never seen 1 and 2.
    assert harness.collected == [[1], [1, 2], [3], [3, 4]]


class Saving(Seen, CheckpointedFunction):
    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.saved = store.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.restored = context.is_restored()

    def open(self, runtime_context: Any) -> None:
        self.seen = self.saved.get()

    def snapshot_state(self, context: Any) -> None:
        self.saved.update(self.seen)


@pytest.mark.parametrize(
    "fault", [Fault.RETRY, Fault.LOSE_HOST, Fault.LOSE_HOST_LATE, Fault.BREAK_OFF]
)
def test_a_function_that_saves_itself_is_never_replaced_between_checkpoints(fault: Fault) -> None:
    harness = _job(Saving(), [1, 2, 3, 4])
    with pytest.raises(UnsavedStateError, match=r"'Map'.*go back to that checkpoint"):
        harness.run({2: {MAP: fault}})


@pytest.mark.parametrize("fault", Fault)
def test_before_its_first_record_it_can_be_replaced(fault: Fault) -> None:
    harness = _job(Saving(), [Pause(), Pause(), 1, 2])
    harness.run({2: {MAP: fault}, 3: {MAP: fault}})
    assert harness.collected == [[1], [1, 2]]


@pytest.mark.parametrize("fault", [Fault.LOSE_HOST, Fault.LOSE_HOST_LATE, Fault.RETRY])
def test_right_after_a_checkpoint_it_goes_on_with_what_it_saved(fault: Fault) -> None:
    harness = _job(Saving(), [1, 2, 3, 4, 5, 6])
    plan_epoch = harness.master.plan_epoch

    def with_a_checkpoint_at_the_end_of_epoch_2(now: float) -> Any:
        plan = plan_epoch(now)
        if plan.epoch != 2:
            return plan
        return replace(plan, controls=tuple(replace(c, checkpoint_id=7) for c in plan.controls))

    harness.master.plan_epoch = with_a_checkpoint_at_the_end_of_epoch_2  # type: ignore[method-assign]
    harness.run({3: {MAP: fault}})
    assert harness.collected[-1] == [1, 2, 3, 4, 5, 6]
