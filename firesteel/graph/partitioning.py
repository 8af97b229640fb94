"""Ship strategies of edges, and the channels between subtasks that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any


class ShipStrategy(Enum):
    """Ship strategies, with the names of Flink's JSON plan."""

    FORWARD = "FORWARD"
    REBALANCE = "REBALANCE"
    RESCALE = "RESCALE"
    SHUFFLE = "SHUFFLE"
    BROADCAST = "BROADCAST"
    GLOBAL = "GLOBAL"
    HASH = "HASH"
    CUSTOM = "CUSTOM"


@dataclass(frozen=True, slots=True)
class Partitioning:
    """A ship strategy and the functions that choose the target of a record.

    ``key_selector``: a callable for HASH and CUSTOM.
    ``key_type``: the declared type of the keys.
    ``partitioner``: a callable for CUSTOM that maps (key, number of targets) to a target.
    ``functions``: the user's KeySelector and Partitioner objects, which a task opens and closes.
    """

    strategy: ShipStrategy
    key_selector: Callable[[Any], Any] | None = None
    key_type: Any = None
    partitioner: Callable[[Any, int], int] | None = None
    functions: tuple[Any, ...] = ()


FORWARD = Partitioning(ShipStrategy.FORWARD)
REBALANCE = Partitioning(ShipStrategy.REBALANCE)
RESCALE = Partitioning(ShipStrategy.RESCALE)
SHUFFLE = Partitioning(ShipStrategy.SHUFFLE)
BROADCAST = Partitioning(ShipStrategy.BROADCAST)
GLOBAL = Partitioning(ShipStrategy.GLOBAL)


def target_subtasks(strategy: ShipStrategy, source: int, sources: int, targets: int) -> range:
    """The downstream subtasks to which upstream subtask ``source`` of ``sources`` has a channel.

    A record goes to some of them. Barriers and watermarks go to all of them.
    """
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
    """The upstream subtasks from which downstream subtask ``target`` of ``targets`` reads.

    As in Flink, rescale divides the larger side evenly among the smaller one, in order.
    """
    if strategy is ShipStrategy.FORWARD:
        return range(target, target + 1)
    if strategy is not ShipStrategy.RESCALE:
        return range(sources)
    if sources >= targets:
        return range(target * sources // targets, (target + 1) * sources // targets)
    source = target * sources // targets
    return range(source, source + 1)
