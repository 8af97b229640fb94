"""A value that is asked for when it is wanted."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

_log = logging.getLogger(__name__)


class Gauge:
    """Calls a function of the user at every snapshot. Each subtask's value is kept by itself."""

    __slots__ = ("_has_failed", "_obj")

    def __init__(self, obj: Callable[[], Any]) -> None:
        if not callable(obj):
            raise TypeError(f"A gauge needs a callable without arguments, not {obj!r}")
        self._obj = obj
        self._has_failed = False

    def get_value(self) -> Any:
        return self._obj()

    def snapshot(self) -> dict[str, Any]:
        return {"kind": "gauge", "values": [self._json_value()]}

    def _json_value(self) -> Any:
        try:
            value = self._obj()
        except Exception:  # noqa: BLE001 - a gauge is the user's code, and must not end the job
            if not self._has_failed:
                _log.warning("A gauge failed; its value is reported as null", exc_info=True)
            self._has_failed = True
            return None
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)  # JSON has no number for it
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return str(value)
