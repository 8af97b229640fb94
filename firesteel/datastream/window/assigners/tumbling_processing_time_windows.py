"""Tumbling windows of processing time: of one size, side by side."""

from __future__ import annotations

from typing import Any

from firesteel.common.time import Duration, Time
from firesteel.datastream.window.arguments import to_millis
from firesteel.datastream.window.assigners.time_windows import ProcessingTimeWindows
from firesteel.datastream.window.assigners.tumbling_windows import TumblingWindows
from firesteel.datastream.window.window_stagger import WindowStagger


class TumblingProcessingTimeWindows(TumblingWindows[Any], ProcessingTimeWindows[Any]):
    """Every record is in exactly one window.

    >>> TumblingProcessingTimeWindows.of(Time.seconds(60), offset=Time.seconds(15))
    TumblingProcessingTimeWindows(60000, 15000)
    """

    def __init__(
        self, size: int, offset: int, window_stagger: WindowStagger = WindowStagger.ALIGNED
    ) -> None:
        super().__init__(size, offset, window_stagger)

    @staticmethod
    def of(
        size: Time | Duration,
        offset: Time | Duration | None = None,
        window_stagger: WindowStagger = WindowStagger.ALIGNED,
    ) -> TumblingProcessingTimeWindows:
        """Windows of ``size``, the first of them beginning at 1970-01-01 UTC plus ``offset``.

        With a ``window_stagger`` every subtask shifts its windows; not in PyFlink.
        """
        return TumblingProcessingTimeWindows(
            to_millis(size, "The size"),
            0 if offset is None else to_millis(offset, "The offset"),
            window_stagger,
        )
