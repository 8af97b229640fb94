"""The level of the logger ``firesteel``, and a handler for programs that set up none."""

from __future__ import annotations

import logging

__all__ = ["set_log_level"]

_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "OFF": logging.CRITICAL + 1,
}


class _StandardError(logging.StreamHandler):  # type: ignore[type-arg]  # its stream is sys.stderr
    """Writes to standard error unless the program has handlers of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            super().emit(record)


def set_log_level(level: str) -> None:
    """Set the level to a value of the setting ``firesteel.log-level``.

    Without a handler Python shows only warnings and errors, so the logger gets one.
    """
    logger = logging.getLogger("firesteel")
    logger.setLevel(_LEVELS[level.upper()])
    if not logger.hasHandlers():
        handler = _StandardError()
        handler.setFormatter(
            logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
        )
        logger.addHandler(handler)
