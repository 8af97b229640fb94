"""Enumerators at the edge: each works in a thread of its own, and may hang there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from firesteel.connectors.base import SourceSplit, SplitEnumerator
from firesteel.graph.operator_specs import SourceSpec
from firesteel.graph.stream_graph import StreamNode
from firesteel.graph.transformations import ChainingStrategy
from firesteel.master import split_enumerators
from firesteel.master.decisions import CommitPositions, DiscoverSplits
from firesteel.master.edge import SingleThread
from firesteel.master.job_master import Event
from firesteel.master.split_enumerators import SplitEnumerators
from tests.late_source import LateEnumerator, LateSource

_SECONDS = 20.0
_NODE = 1


class _Enumerator(LateEnumerator):
    """Hangs in one method until it is released, and notes its calls."""

    def __init__(self, source: _Source, found: int) -> None:
        super().__init__(source, found)
        self._of = source

    def discover_splits(self) -> list[SourceSplit]:
        self._of.call("discover")
        return super().discover_splits()

    def checkpoint_complete(self, splits: Sequence[SourceSplit]) -> None:
        self._of.call("commit")

    def close(self) -> None:
        self._of.calls.append("close")
        self._of.closed.set()


class _Source(LateSource):
    def __init__(self, hangs_in: str) -> None:
        super().__init__()
        self._hangs_in = hangs_in
        self.calls: list[str] = []
        self.hangs = threading.Event()
        self.released = threading.Event()
        self.closed = threading.Event()

    def call(self, method: str) -> None:
        self.calls.append(method)
        if method == self._hangs_in:
            self.hangs.set()
            assert self.released.wait(_SECONDS)

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return _Enumerator(self, state or 0)


def _enumerators(source: _Source, posted: list[Event]) -> SplitEnumerators:
    node = StreamNode(
        id=_NODE,
        operator_id="0" * 32,
        name="numbers",
        description="numbers",
        spec=SourceSpec(source),
        parallelism=1,
        max_parallelism=128,
        slot_sharing_group="default",
        chaining=ChainingStrategy.ALWAYS,
        buffer_timeout=100,
    )
    enumerators = SplitEnumerators([node], "job", SingleThread, posted.append)
    for created in enumerators.create({}).values():
        created.result(_SECONDS)
    return enumerators


@pytest.mark.parametrize("method", ["discover", "commit"])
def test_an_enumerator_that_hung_too_long_commits_no_old_positions(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_enumerators, "_CLOSE_SECONDS", 0.05)
    monkeypatch.setattr(split_enumerators, "_BUSY_CLOSE_SECONDS", 0.05)
    source = _Source(hangs_in=method)
    enumerators = _enumerators(source, [])
    first = DiscoverSplits(_NODE) if method == "discover" else CommitPositions(_NODE, ())
    enumerators.carry_out(first)
    assert source.hangs.wait(_SECONDS)
    enumerators.carry_out(CommitPositions(_NODE, ()))
    enumerators.close()
    source.released.set()
    assert source.closed.wait(_SECONDS)
    assert source.calls == [method, "close"]


def test_an_enumerator_commits_the_last_positions_before_it_is_closed() -> None:
    posted: list[Event] = []
    source = _Source(hangs_in="nothing")
    enumerators = _enumerators(source, posted)
    for _ in range(3):
        enumerators.carry_out(CommitPositions(_NODE, ()))
    enumerators.close()
    assert source.calls == ["commit", "commit", "commit", "close"]
    assert len(posted) == 3


def test_nothing_is_asked_after_the_end() -> None:
    source = _Source(hangs_in="nothing")
    enumerators = _enumerators(source, [])
    enumerators.close()
    enumerators.carry_out(DiscoverSplits(_NODE))
    assert source.calls == ["close"]
