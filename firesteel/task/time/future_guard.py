"""A guard against timestamps from the future, which would make all other records late."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

from firesteel.common.constants import MIN_WATERMARK
from firesteel.common.watermark_strategy import (
    BoundedOutOfOrderness,
    CustomGenerator,
    IngestionTime,
    NoWatermarks,
    WatermarkStrategy,
)
from firesteel.errors import shorten

_log = logging.getLogger("firesteel")

_HOUR_MILLIS = 60 * 60 * 1000
_ODD_MILLIS = 24 * _HOUR_MILLIS
_NEVER = 1 << 65
# After a leap of some hours, or after the first record, a single older record may be a straggler.
_VOTES = 3


@dataclass(slots=True)
class Front:
    """The newest timestamp of one split, and the single record that may have leaped to it.

    left_behind: the number of records since then, all of them far older than the suspect.
    """

    newest: int = MIN_WATERMARK
    suspect: _Leap | None = None
    left_behind: int = 0

    def suspects(self, leap: _Leap | None) -> None:
        self.suspect = leap
        self.left_behind = 0


class _Leap(NamedTuple):
    value: Any
    timestamp: int
    # The newest timestamp before it.
    before: int


class FutureGuard:
    """Decides how new a timestamp may be for the watermark to follow it.

    Without a bound every timestamp counts. The guard logs two things, once per subtask and with the
    record. The first is a timestamp more than a day ahead of the clock. The second is a timestamp
    that leaps more than an hour ahead of all earlier ones, if the records after it do not follow. A
    leap alone may be a gap in the data.
    """

    def __init__(self, strategy: WatermarkStrategy, operator: str) -> None:
        drift = strategy.max_future_drift
        self._drift = None if drift is None else drift.to_millis()
        self._operator = operator
        # Timestamps further ahead of the clock than this are examined.
        self.tolerance = _ODD_MILLIS if self._drift is None else self._drift
        # A batch is examined if its newest timestamp is this far from the newest one so far.
        self.leap = _leap(strategy)
        # The watermark of a user's generator is known only after it has seen the record.
        self._follows = not isinstance(strategy.generator, CustomGenerator)
        self._warned = False

    def refuses(self, value: Any, timestamp: int, now: int) -> bool:
        """True if the watermark must not follow a timestamp that is beyond the tolerance."""
        if not self._warned:
            self._warned = True
            if self._drift is None:
                self.leap = _NEVER
            follows = (
                "The watermark does not follow it."
                if self._drift is not None
                else "The watermark follows it, so later records may be late. "
                "WatermarkStrategy.with_max_future_drift() prevents this."
            )
            _log.warning(
                "%s: the timestamp %d of the record %s is %.1f hours ahead of the clock. %s This "
                "is logged once per subtask.",
                self._operator,
                timestamp,
                shorten(value),
                (timestamp - now) / _HOUR_MILLIS,
                follows,
            )
        return self._drift is not None

    def examine(
        self, front: Front, values: list[Any], stamps: list[int], newest: int, watermark: int
    ) -> None:
        """Examine a batch that leaps, or that is far older than a leap in it or before it."""
        if newest - stamps[-1] > self.leap:
            # Without a leap, the old records are mere stragglers.
            if front.suspect is not None or newest - front.newest > self.leap:
                self._examine_each(front, values, stamps, watermark)
        elif front.newest - newest > self.leap:
            self._leave_behind(front, values[0], stamps[0], len(values), watermark)
        else:
            # The batch leaps. Unless only its last record does, later records confirm the leap.
            before = stamps[-2] if len(stamps) > 1 else front.newest
            alone = stamps[-1] - before > self.leap
            front.suspects(_Leap(values[-1], stamps[-1], before) if alone else None)
        front.newest = max(front.newest, newest)

    def _examine_each(
        self, front: Front, values: list[Any], stamps: list[int], watermark: int
    ) -> None:
        level = front.newest
        for value, stamp in zip(values, stamps, strict=True):
            if stamp - level > self.leap:
                front.suspects(_Leap(value, stamp, level))
            elif level - stamp > self.leap:
                self._leave_behind(front, value, stamp, 1, watermark)
            else:
                front.suspects(None)
            level = max(level, stamp)

    def _leave_behind(
        self, front: Front, value: Any, stamp: int, records: int, watermark: int
    ) -> None:
        leap = front.suspect
        if leap is None or not (self._follows or watermark > stamp):
            return
        front.left_behind += records
        if front.left_behind < self._votes(leap):
            return
        front.suspects(None)
        if self.leap == _NEVER:
            return
        self.leap = _NEVER
        _log.warning(
            "%s: the record %s with the timestamp %d is %.1f hours ahead of the record %s (%d) "
            "that came after it. The watermark has followed the first record. If its timestamp is "
            "wrong, the records after it are late. WatermarkStrategy.with_max_future_drift() "
            "guards against timestamps that are ahead of the clock. This is logged once per "
            "subtask.",
            self._operator,
            shorten(leap.value),
            leap.timestamp,
            (leap.timestamp - stamp) / _HOUR_MILLIS,
            shorten(value),
            stamp,
        )

    def _votes(self, leap: _Leap) -> int:
        """The number of old records after which the leap is considered wrong."""
        far = leap.before != MIN_WATERMARK and leap.timestamp - leap.before > _ODD_MILLIS
        return 1 if far else _VOTES


def _leap(strategy: WatermarkStrategy) -> int:
    generator = strategy.generator
    if isinstance(generator, NoWatermarks | IngestionTime):
        return _NEVER
    if isinstance(generator, BoundedOutOfOrderness):
        return _HOUR_MILLIS + generator.max_out_of_orderness.to_millis()
    return _HOUR_MILLIS
