"""How much of a subtask's state was written, and so when its log should be replaced."""

from __future__ import annotations

from collections.abc import Iterable

from firesteel.state.changelog import Segment, SegmentStore

# The log is replaced by a full snapshot when it has grown to this many times the state's size:
# each change is then written about 1.5 times, and a restore reads at most three times the state.
_LOG_GROWTH = 2


class SegmentAccount:
    """Knows the segments that a restore would need, in their order."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self.segments: list[Segment] = []
        self.full_bytes = 0
        self.log_bytes = 0
        # Of the segments that travel in every control row.
        self.inline_bytes = 0
        for segment in segments:
            self.add(segment)

    def add(self, segment: Segment) -> None:
        self.segments = with_segment(self.segments, segment)
        self.full_bytes = sum(kept.size for kept in self.segments if kept.full)
        self.log_bytes = sum(kept.size for kept in self.segments if not kept.full)
        self.inline_bytes = sum(map(_inline, self.segments))

    def is_log_long(self, store: SegmentStore, added: int = 0) -> bool:
        limit = max(store.inline_threshold, _LOG_GROWTH * self.full_bytes)
        return self.log_bytes + added > limit


def with_segment(segments: list[Segment], new: Segment) -> list[Segment]:
    """The segments that are needed once there is another: a full one covers all up to its epoch."""
    if not new.full:
        return [*segments, new]
    return [new, *(kept for kept in segments if not kept.full and kept.epoch > new.epoch)]


def _inline(segment: Segment) -> int:
    return len(segment.inline or b"") + sum(len(file.inline or b"") for file in segment.files)
