"""What the API records: one Transformation per operator, linked to where its input comes from."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from firesteel.graph.operator_specs import OperatorSpec
from firesteel.graph.partitioning import Partitioning

_ids = itertools.count(1)


class ChainingStrategy(Enum):
    ALWAYS = "ALWAYS"
    NEVER = "NEVER"
    HEAD = "HEAD"


@dataclass(slots=True, eq=False)
class Transformation:
    """One operator of the program. ``inputs[i]`` holds the origins of input i (several: a union)."""

    name: str
    spec: OperatorSpec
    inputs: tuple[tuple[Origin, ...], ...] = ()
    output_type: Any = None
    parallelism: int | None = None
    max_parallelism: int | None = None
    # force_non_parallel: parallelism is 1 and may not be set again.
    non_parallel: bool = False
    uid: str | None = None
    uid_hash: str | None = None
    description: str | None = None
    slot_sharing_group: str | None = None
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    buffer_timeout: int | None = None
    # An object that stays in the driver: the DataFrame of a source, the writer of a DataFrame sink.
    driver_object: Any = None
    # The types of the side outputs that somebody reads, by tag id.
    side_output_types: dict[str, Any] = field(default_factory=dict)
    # Of the head of a loop: the tails whose records come back to it.
    tails: list[Transformation] = field(default_factory=list)
    id: int = field(default_factory=lambda: next(_ids))


@dataclass(frozen=True, slots=True)
class Origin:
    """A stream as its consumer sees it: whose output, which side output, shipped how.

    Without a partitioning it is FORWARD where both parallelisms agree, else REBALANCE, as in Flink.
    """

    transformation: Transformation
    side_output: str | None = None
    partitioning: Partitioning | None = None

    def shipped(self, partitioning: Partitioning) -> Origin:
        return replace(self, partitioning=partitioning)
