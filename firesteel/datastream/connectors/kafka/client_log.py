"""Where librdkafka's own log lines go."""

from __future__ import annotations

import logging
import time

__all__ = ["client_log"]

_REPEAT_SECONDS = 30.0


class _Seldom(logging.Filter):
    """A broker that cannot be reached is tried every few milliseconds: one line of it is enough."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, text = time.monotonic(), record.getMessage()
        if now - self._said.get(text, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return False
        self._said = {t: at for t, at in self._said.items() if now - at < _REPEAT_SECONDS}
        self._said[text] = now
        return True


def client_log() -> logging.Logger:
    """For all clients of this process."""
    log = logging.getLogger(__name__)
    if not log.filters:
        log.addFilter(_Seldom())
    return log
