"""Reports of slots about their work, and questions to their processes, while an epoch runs.

Acks come at the end of an epoch, which back pressure can delay by far. Reports come every second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from firesteel.common.constants import MIN_WATERMARK

#: The first byte of a message that is a report or an answer. Pickles begin with a different byte.
REPORT_MARK: Final = b"R"
#: The first byte of credits, which the driver passes on to other slots.
CREDITS_MARK: Final = b"C"


@dataclass(slots=True)
class SubtaskFigures:
    """The work of a subtask since its slot began. Watermarks and operators are the latest.

    ``operators`` has figures by node and name, and ``records`` the records into and out of operators.
    """

    vertex: int
    subtask: int
    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    busy_seconds: float = 0.0
    idle_seconds: float = 0.0
    back_pressured_seconds: float = 0.0
    watermark_in: int = MIN_WATERMARK
    watermark_out: int = MIN_WATERMARK
    in_pool: float = 0.0
    out_pool: float = 0.0
    operators: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    records: Mapping[int, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SlotReport:
    """The figures of all subtasks of a slot. ``seconds`` is the age of the slot."""

    level: int
    slot: int
    attempt: int
    host: str
    seconds: float
    subtasks: tuple[SubtaskFigures, ...]


@dataclass(frozen=True, slots=True)
class SlotQuestion:
    """A question to the process of a slot: ``what`` is "stacks", "threads" or "log"."""

    number: int
    what: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SlotAnswer:
    number: int
    answer: Any
