"""How records travel along an edge: Flink's ship strategies as plain data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any


class ShipStrategy(Enum):
    """The names are the ones that Flink's JSON plan prints."""

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
    """A ship strategy with what it needs to decide where a record goes.

    ``key_selector`` serves HASH and CUSTOM; ``partitioner`` serves CUSTOM and maps
    (key, number of targets) to a target. Both are plain callables. ``functions`` are the user's
    KeySelector and Partitioner objects behind them, which a task opens and closes.
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
