"""The logger ``firesteel``: how much it says where the program has not set up logging itself."""

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
    """Steps back as soon as the program has handlers of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            super().emit(record)


def set_log_level(level: str) -> None:
    """``level`` is one of the setting firesteel.log-level.

    Without any handler Python shows warnings and errors only, so there is one for the logger.
    """
    logger = logging.getLogger("firesteel")
    logger.setLevel(_LEVELS[level.upper()])
    if not logger.hasHandlers():
        handler = _StandardError()
        handler.setFormatter(
            logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
        )
        logger.addHandler(handler)
