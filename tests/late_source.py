"""A user-defined source: each call of its enumerator finds one split with one number."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from firesteel.datastream.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
)


class LateEnumerator(SplitEnumerator):
    def __init__(self, source: LateSource, found: int) -> None:
        self._source = source
        self._found = found

    def discover_splits(self) -> list[SourceSplit]:
        self._source.called("discover_splits")
        if self._found == self._source.splits:
            return []
        self._found += 1
        return [SourceSplit(str(self._found))]

    def is_complete(self) -> bool:
        return self._found == self._source.splits

    def next_discovery_delay(self) -> float:
        return self._source.delay

    def snapshot_state(self) -> int:
        self._source.called("snapshot_state")
        return self._found

    def close(self) -> None:
        self._source.called("enumerator close")


class LateReader(SourceReader):
    def __init__(self, source: LateSource) -> None:
        self._source = source
        self._splits: list[SourceSplit] = []

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        self._source.called("add_splits")
        self._splits += splits

    def read(self, limit: int) -> list[int]:
        self._source.called("read")
        return [int(self._splits.pop(0).split_id)] if self._splits else []

    def snapshot_splits(self) -> list[SourceSplit]:
        self._source.called("snapshot_splits")
        return list(self._splits)

    def close(self) -> None:
        self._source.called("reader close")


class LateSource(Source):
    """``fails_in`` names the method that raises ``error``."""

    def __init__(
        self,
        splits: int = 3,
        delay: float = 0.5,
        fails_in: str | None = None,
        error: BaseException | None = None,
    ) -> None:
        self.splits = splits
        self.delay = delay
        self._fails_in = fails_in
        self._error = error or ValueError(f"bad {fails_in}")

    def called(self, method: str) -> None:
        if method == self._fails_in:
            raise self._error

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        self.called("create_enumerator")
        return LateEnumerator(self, state or 0)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        self.called("create_reader")
        return LateReader(self)


#: Set while an enumerator of a HangingSource hangs, until it is released.
HANGING = threading.Event()
RELEASED = threading.Event()


class HangingEnumerator(LateEnumerator):
    """Answers the first call. The second one hangs until RELEASED is set."""

    def discover_splits(self) -> list[SourceSplit]:
        if self._found:
            HANGING.set()
            RELEASED.wait()
        return super().discover_splits()


class HangingSource(LateSource):
    def __init__(self) -> None:
        super().__init__(splits=2, delay=0.01)

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return HangingEnumerator(self, state or 0)


@contextmanager
def hanging_enumerators() -> Iterator[None]:
    """Let enumerators of HangingSource hang within the block."""
    HANGING.clear()
    RELEASED.clear()
    try:
        yield
    finally:
        RELEASED.set()
