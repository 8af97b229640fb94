"""Transformations: the operators that the API records, linked to their inputs."""

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
    """One operator of the program. ``inputs[i]`` has the origins of input i, several for a union."""

    name: str
    spec: OperatorSpec
    inputs: tuple[tuple[Origin, ...], ...] = ()
    output_type: Any = None
    parallelism: int | None = None
    max_parallelism: int | None = None
    # Set by force_non_parallel: the parallelism is 1 and cannot be changed.
    non_parallel: bool = False
    uid: str | None = None
    uid_hash: str | None = None
    description: str | None = None
    slot_sharing_group: str | None = None
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    buffer_timeout: int | None = None
    # An object that stays in the driver: the DataFrame of a source, the writer of a DataFrame sink.
    driver_object: Any = None
    # The types of the side outputs with consumers, by tag id.
    side_output_types: dict[str, Any] = field(default_factory=dict)
    # For the head of an iteration: the tails that send records back to it.
    tails: list[Transformation] = field(default_factory=list)
    id: int = field(default_factory=lambda: next(_ids))


@dataclass(frozen=True, slots=True)
class Origin:
    """An input stream: the operator, its side output, and the partitioning.

    As in Flink, the default partitioning is FORWARD between equal parallelisms, else REBALANCE.
    """

    transformation: Transformation
    side_output: str | None = None
    partitioning: Partitioning | None = None

    def shipped(self, partitioning: Partitioning) -> Origin:
        return replace(self, partitioning=partitioning)
