"""Queues that order the results and watermarks of the async wait operator.

They have no threads and no clock. The operator adds records and watermarks as they come, marks
records as done, and takes what may leave. ``size`` counts all records in a queue, and ``elements``
returns them with the watermarks between them, done or not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from firesteel.task.async_io.invoker import AsyncRequest

Element = AsyncRequest | int
"""A record that is done, or a watermark."""


class OrderedElementQueue:
    """First in, first out, for records and watermarks alike."""

    def __init__(self) -> None:
        self._elements: deque[Element] = deque()
        self.size = 0

    def add(self, request: AsyncRequest) -> None:
        self._elements.append(request)
        self.size += 1

    def add_watermark(self, watermark: int) -> None:
        self._elements.append(watermark)

    def complete(self, request: AsyncRequest) -> None:
        request.done = True

    def elements(self) -> list[Element]:
        return list(self._elements)

    def take(self) -> Iterator[Element]:
        elements = self._elements
        while elements:
            head = elements[0]
            if isinstance(head, AsyncRequest):
                if not head.done:
                    return
                self.size -= 1
            yield elements.popleft()


class _Segment:
    """The records between two watermarks, and the second watermark once it has come."""

    __slots__ = ("completed", "pending", "watermark")

    def __init__(self) -> None:
        # In the order of their records.
        self.pending: dict[AsyncRequest, None] = {}
        self.completed: list[AsyncRequest] = []
        self.watermark: int | None = None


class UnorderedElementQueue:
    """Records leave as they are done, but no record and no watermark overtakes a watermark."""

    def __init__(self) -> None:
        self._segments: deque[_Segment] = deque([_Segment()])
        self.size = 0

    def add(self, request: AsyncRequest) -> None:
        segment = self._segments[-1]
        segment.pending[request] = None
        request.segment = segment
        self.size += 1

    def add_watermark(self, watermark: int) -> None:
        self._segments[-1].watermark = watermark
        self._segments.append(_Segment())

    def complete(self, request: AsyncRequest) -> None:
        request.done = True
        segment: _Segment = request.segment
        del segment.pending[request]
        segment.completed.append(request)

    def elements(self) -> list[Element]:
        found: list[Element] = []
        for segment in self._segments:
            found += segment.completed
            found += segment.pending
            if segment.watermark is not None:
                found.append(segment.watermark)
        return found

    def take(self) -> Iterator[Element]:
        while True:
            segment = self._segments[0]
            completed, segment.completed = segment.completed, []
            self.size -= len(completed)
            yield from completed
            if segment.pending or segment.watermark is None:
                return
            yield segment.watermark
            self._segments.popleft()
