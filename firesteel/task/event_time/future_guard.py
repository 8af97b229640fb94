"""Timestamps from the future: one broken clock must not make all other records late."""

from __future__ import annotations

import logging
from typing import Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.errors import shorten

_log = logging.getLogger("firesteel")

_ODD_MILLIS = 24 * 60 * 60 * 1000


class FutureGuard:
    """Says how new a timestamp may be for the watermark to follow it.

    Without a bound every timestamp counts, but the first one that is more than a day ahead of the
    clock is logged together with its record.
    """

    def __init__(self, strategy: WatermarkStrategy, operator: str) -> None:
        drift = strategy.max_future_drift
        self._drift = None if drift is None else drift.to_millis()
        self._operator = operator
        # What is further ahead than this is looked at closely.
        self.tolerance = _ODD_MILLIS if self._drift is None else self._drift
        self._warned = False

    def refuses(self, value: Any, timestamp: int, now: int) -> bool:
        """Whether the watermark must not follow a timestamp that is beyond the tolerance."""
        if not self._warned:
            self._warned = True
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
                (timestamp - now) / 3_600_000,
                follows,
            )
        return self._drift is not None
