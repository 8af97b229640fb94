"""What an attempt that has failed leaves in the stores of its sinks: the next one undoes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from firesteel.graph.job_graph import JobGraph
from firesteel.graph.operator_specs import TwoPhaseCommitSinkSpec
from firesteel.master.committables import Committables, Place
from firesteel.master.state_ledger import StateLedger
from firesteel.task.messages import AbandonedState, OperatorHandle, SubtaskHandle

Abandoned = Mapping[Place, Mapping[int, tuple[AbandonedState, ...]]]
"""By (vertex, subtask) and node."""


def abandoned_states(
    graph: JobGraph, ledger: StateLedger, committables: Committables, completed: int
) -> Abandoned:
    """The transactions of all subtasks, as of the last epoch.

    ``completed`` is the newest checkpoint that is complete. A subtask that has not run an epoch
    has not undone what was there before it: that is handed on.
    """
    abandoned: dict[Place, dict[int, tuple[AbandonedState, ...]]] = {}
    for vertex in graph.vertices:
        for node in vertex.operators:
            if not isinstance(graph.nodes[node].spec, TwoPhaseCommitSinkSpec):
                continue
            for subtask in range(vertex.parallelism):
                handle = ledger.handle(vertex.id, subtask)
                last = AbandonedState(
                    handle.operators.get(node, OperatorHandle()).whole,
                    committables.behind_checkpoints_of(vertex.id, subtask, node),
                    completed,
                )
                before = handle.abandoned.get(node, ())
                # An attempt that ran no epoch has nothing to add: they may be many.
                states = before if last in before else (*before, last)
                abandoned.setdefault((vertex.id, subtask), {})[node] = states
    return abandoned


def with_abandoned(
    handles: Mapping[Place, SubtaskHandle], abandoned: Abandoned
) -> Mapping[Place, SubtaskHandle]:
    """What the next attempt begins with."""
    return {
        place: replace(
            handles.get(place, SubtaskHandle()), abandoned=dict(abandoned.get(place, {}))
        )
        for place in (*handles, *(place for place in abandoned if place not in handles))
    }
