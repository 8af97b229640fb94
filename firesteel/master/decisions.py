"""Decisions of the job master that its edge carries out. Results come back as events.

The decisions of the checkpoint coordinator are in ``checkpoint.rules.decisions``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.checkpoint.rules.decisions import (
    AnswerRequest,
    CleanUp,
    DeleteCheckpoint,
    DeleteSavepoint,
    DiscardCheckpoints,
    WriteSnapshot,
)
from firesteel.connectors.base import SourceSplit


@dataclass(frozen=True, slots=True)
class DiscoverSplits:
    """Ask the enumerator of a source for new splits, then call ``splits_discovered``.

    ``all_read``: the readers have read all splits that it has found so far.
    """

    node: int
    all_read: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class AskPending:
    """Ask the enumerator whether ``splits`` have something to read, then call ``pending_known``."""

    node: int
    splits: tuple[SourceSplit, ...]


@dataclass(frozen=True, slots=True)
class CommitPositions:
    """Tell the enumerator which splits a completed checkpoint still has to read.

    Then call ``positions_committed``.
    """

    node: int
    splits: tuple[SourceSplit, ...]


@dataclass(frozen=True, slots=True)
class CommitPrepared:
    """Commit in the driver what the sinks of a batch job have prepared, by node.

    Then call ``prepared_committed``.
    """

    committables: Mapping[int, Sequence[Any]]


CheckpointDecision = (
    WriteSnapshot
    | DeleteCheckpoint
    | DeleteSavepoint
    | DiscardCheckpoints
    | CleanUp
    | AnswerRequest
)
SourceDecision = DiscoverSplits | AskPending | CommitPositions
EdgeDecision = CheckpointDecision | SourceDecision | CommitPrepared
