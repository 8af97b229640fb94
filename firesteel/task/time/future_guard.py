"""Timestamps from the future: one broken clock must not make all other records late unnoticed."""

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
# After a leap of some hours, or the very first record, a single one may be a straggler.
_VOTES = 3


@dataclass(slots=True)
class Front:
    """How far the timestamps of one split have come, and whether a single record brought them there.

    ``left_behind``: how many records have come since, all of them far behind the suspect.
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
    # The newest timestamp that was there before it.
    before: int


class FutureGuard:
    """Says how new a timestamp may be for the watermark to follow it.

    Without a bound every timestamp counts. What is logged, once for each subtask and together with
    its record: a timestamp more than a day ahead of the clock; and one that leaps more than an hour
    ahead of all before it, if the records after it stay behind. A leap alone may be a gap in the data.
    """

    def __init__(self, strategy: WatermarkStrategy, operator: str) -> None:
        drift = strategy.max_future_drift
        self._drift = None if drift is None else drift.to_millis()
        self._operator = operator
        # What is further ahead of the clock than this is looked at closely.
        self.tolerance = _ODD_MILLIS if self._drift is None else self._drift
        # So is a batch whose newest record is further away than this from where it should be.
        self.leap = _leap(strategy)
        # What a generator of the user's own makes of a timestamp is seen only afterwards.
        self._follows = not isinstance(strategy.generator, CustomGenerator)
        self._warned = False

    def refuses(self, value: Any, timestamp: int, now: int) -> bool:
        """Whether the watermark must not follow a timestamp that is beyond the tolerance."""
        if not self._warned:
            self._warned = True
            if self._drift is None:
                self.leap = _NEVER
            follows = (
                "The watermark does not follow it."
                if self._drift is not None
                else "The watermark follows it, and records with older timestamps may be late from "
                "now on. WatermarkStrategy.with_max_future_drift() guards against that."
            )
            _log.warning(
                "%s: the timestamp %d of the record %s is %.1f hours ahead of the clock. %s This is "
                "logged once for each subtask.",
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
        """Look at a batch that leaps, or that a leap has left behind, in itself or before it."""
        if newest - stamps[-1] > self.leap:
            # Without a leap they are mere stragglers.
            if front.suspect is not None or newest - front.newest > self.leap:
                self._examine_each(front, values, stamps, watermark)
        elif front.newest - newest > self.leap:
            self._leave_behind(front, values[0], stamps[0], len(values), watermark)
        else:
            # It leaps. Unless its last record did so alone, those after that one vouch for it.
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
            "%s: the record %s with the timestamp %d is %.1f hours ahead of the record %s (%d) that "
            "came after it. If its timestamp is wrong, the watermark has followed it all the same, "
            "and the records after it are late. WatermarkStrategy.with_max_future_drift() guards "
            "against timestamps that are ahead of the clock. This is logged once for each subtask.",
            self._operator,
            shorten(leap.value),
            leap.timestamp,
            (leap.timestamp - stamp) / _HOUR_MILLIS,
            shorten(value),
            stamp,
        )

    def _votes(self, leap: _Leap) -> int:
        """How many records it takes to say that it is not they who are odd."""
        far = leap.before != MIN_WATERMARK and leap.timestamp - leap.before > _ODD_MILLIS
        return 1 if far else _VOTES


def _leap(strategy: WatermarkStrategy) -> int:
    generator = strategy.generator
    if isinstance(generator, NoWatermarks | IngestionTime):
        return _NEVER
    if isinstance(generator, BoundedOutOfOrderness):
        return _HOUR_MILLIS + generator.max_out_of_orderness.to_millis()
    return _HOUR_MILLIS
