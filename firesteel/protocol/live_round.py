"""A round: the answers of live slots to one epoch plan, and the time at which the epoch ends."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.errors import JobExecutionError
from firesteel.protocol.execution import EpochPlan, EpochRows
from firesteel.protocol.messages import (
    ReadBudget,
    SlotAck,
    SlotControl,
    SlotFailure,
    SubtaskAck,
    SubtaskHandle,
    abandoned_by,
    decode,
)
from firesteel.protocol.rows import ACK, END_WANTED, FAILURE, OUTPUT, BufferRow
from firesteel.usercode import pickling

_log = logging.getLogger("firesteel")

Place = tuple[int, int]
"""The level and the index of a slot."""


@dataclass(slots=True)
class LiveRounds:
    """The rounds of one query, one after the other.

    Slots do not wait for each other. A slot may already send output of the next epoch while others
    still work on this one.
    """

    places: frozenset[Place]
    # The slots have no state yet: the next controls bring it.
    are_fresh: bool = True
    end_is_wanted: bool = False
    # Rows wait in a slot, so that sources read nothing in the next epoch.
    is_loaded: bool = False
    _early_outputs: list[tuple[int, list[Any]]] = field(default_factory=list)

    def begin(self, plan: EpochPlan, budget: ReadBudget | None = None) -> LiveRound:
        """Begin the round of a plan. ``budget`` replaces that of its controls."""
        begun = LiveRound(self, plan, set(self.places), self._controls(plan, budget))
        begun.rows.outputs, self._early_outputs = self._early_outputs, []
        begun.end_is_wanted, self.end_is_wanted = self.end_is_wanted, False
        self.are_fresh = False
        self.is_loaded = False
        return begun

    def _controls(
        self, plan: EpochPlan, budget: ReadBudget | None
    ) -> list[tuple[Place, SlotControl]]:
        """Return the controls by place. Slots that have their state get none with them."""
        keeps_handles = self.are_fresh or plan.closing
        return [
            (
                (control.address.level, control.address.slot),
                replace(
                    control,
                    handles=control.handles if keeps_handles else {},
                    budget=budget or control.budget,
                    waits=self.is_loaded,
                ),
            )
            for control in plan.controls
        ]

    def take_early(self, node: int, records: list[Any]) -> None:
        self._early_outputs.append((node, records))


def retried(plan: EpochPlan, void: Iterable[SlotAck], transactional: Collection[int]) -> EpochPlan:
    """Return the plan for a second try of an epoch, after some slots had answered the first.

    Their sinks may have prepared transactions, which the second try aborts. The state of the
    ``transactional`` nodes has them. Other sinks have handed them to the driver.
    """
    acks = {(ack.address.level, ack.address.slot): ack.subtasks for ack in void}
    return replace(
        plan,
        controls=tuple(
            replace(
                control,
                handles=_with_void(
                    control.handles,
                    acks.get((control.address.level, control.address.slot), ()),
                    transactional,
                ),
            )
            for control in plan.controls
        ),
    )


def _with_void(
    handles: Mapping[int, SubtaskHandle], acks: Iterable[SubtaskAck], transactional: Collection[int]
) -> dict[int, SubtaskHandle]:
    changed = dict(handles)
    for ack in acks:
        handle = changed.get(ack.vertex, SubtaskHandle())
        abandoned = dict(handle.abandoned)
        for node, void in abandoned_by(ack, transactional, completed=0).items():
            abandoned[node] = (*abandoned.get(node, ()), void)
        changed[ack.vertex] = replace(handle, abandoned=abandoned)
    return changed


@dataclass(slots=True)
class LiveRound:
    """One epoch: ``awaited`` are the slots that have not answered yet."""

    _rounds: LiveRounds
    plan: EpochPlan
    awaited: set[Place]
    controls: Iterable[tuple[Place, SlotControl]]
    rows: EpochRows = field(default_factory=EpochRows)
    end_is_wanted: bool = False
    # The slots were told to end the epoch.
    is_ended: bool = False

    @property
    def is_over(self) -> bool:
        """True if all slots have answered, or if one has failed. The others are then closed at work."""
        return not self.awaited or (bool(self.rows.failures) and not self.plan.closing)

    @property
    def was_quiet(self) -> bool:
        """No subtask has received or sent a record."""
        return not any(
            one.metrics.records_in or one.metrics.records_out
            for ack in self.rows.acks
            for one in ack.subtasks
        )

    def take(self, place: Place, row: BufferRow) -> SlotAck | None:
        """Take a row of a slot. Return it, if it is the ack of this epoch."""
        if row.kind == END_WANTED:
            if self.is_ended:
                self._rounds.end_is_wanted = True
            self.end_is_wanted = True
        elif row.kind == OUTPUT:
            records = pickling.loads(row.payload)
            if place in self.awaited:
                self.rows.outputs.append((row.edge, records))
            else:
                self._rounds.take_early(row.edge, records)
        elif row.kind == ACK:
            ack: SlotAck = decode(row.payload)
            # Slots that are closed at work may have answered to the epoch before.
            if ack.address.epoch == self.plan.epoch and place in self.awaited:
                self.awaited.discard(place)
                self.rows.acks.append(ack)
                self._rounds.is_loaded |= ack.is_loaded
                return ack
        elif row.kind == FAILURE:
            failure: SlotFailure = decode(row.payload)
            if failure.address.epoch == self.plan.epoch or not self.plan.closing:
                self.awaited.discard(place)
                self.rows.failures.append(failure)
            else:
                # The first failure has ended the epoch.
                _log.error("level %d, slot %d also failed: %s", *place, failure.error)
        else:
            raise JobExecutionError(f"a row of kind {row.kind} reached the driver")
        return None
