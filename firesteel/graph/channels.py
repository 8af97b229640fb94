"""Which subtasks an edge connects. Records choose among these; barriers and watermarks take all."""

from __future__ import annotations

from firesteel.graph.partitioning import ShipStrategy


def target_subtasks(strategy: ShipStrategy, source: int, sources: int, targets: int) -> range:
    """The downstream subtasks that upstream subtask ``source`` of ``sources`` has a channel to."""
    if strategy is ShipStrategy.FORWARD:
        return range(source, source + 1)
    if strategy is not ShipStrategy.RESCALE:
        return range(targets)
    connected = [
        target
        for target in range(targets)
        if source in source_subtasks(strategy, target, sources, targets)
    ]
    return range(connected[0], connected[-1] + 1)


def source_subtasks(strategy: ShipStrategy, target: int, sources: int, targets: int) -> range:
    """The upstream subtasks that downstream subtask ``target`` of ``targets`` reads from.

    Rescale splits the larger side evenly over the smaller one, in order, as Flink does.
    """
    if strategy is ShipStrategy.FORWARD:
        return range(target, target + 1)
    if strategy is not ShipStrategy.RESCALE:
        return range(sources)
    if sources >= targets:
        return range(target * sources // targets, (target + 1) * sources // targets)
    source = target * sources // targets
    return range(source, source + 1)
