"""Tell used, known, unknown and misspelled keys apart."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

from firesteel.config.known_keys import FLINK_KEYS, FLINK_PREFIXES
from firesteel.config.option import Option
from firesteel.config.options import ALL_OPTIONS
from firesteel.errors import ConfigurationError

__all__ = ["KeyFinding", "KeyStatus", "check_keys", "classify_key", "note_without_effect"]

_logger = logging.getLogger("firesteel")
_WITHOUT_EFFECT = "Flink's setting '%s' is accepted, but has no effect in Firesteel."
_noted: set[str] = set()
# Flink's own keys are less alike than a word and its misspelling.
_CLOSE = 0.9
_VAGUELY_CLOSE = 0.6


class KeyStatus(Enum):
    """What a key is to Firesteel."""

    USED = "used"
    SPARK = "passed through to Spark"
    FLINK = "known from Flink, without effect"
    UNKNOWN = "unknown"
    MISSPELLED = "misspelled"


@dataclass(frozen=True, slots=True)
class KeyFinding:
    """A key, what it is, and the key that was probably meant."""

    key: str
    status: KeyStatus
    suggestion: str | None = None


@lru_cache(maxsize=1)
def _declared() -> dict[str, Option[object]]:
    declared = {option.key: option for option in ALL_OPTIONS}
    for option in ALL_OPTIONS:
        declared.update(dict.fromkeys(option.deprecated_keys, option))
    return declared


def classify_key(key: str) -> KeyFinding:
    """Say what ``key`` is, without raising or logging."""
    option = _declared().get(key)
    if option is not None:
        return KeyFinding(key, KeyStatus.USED if option.is_used else KeyStatus.FLINK)
    if key.startswith("spark."):
        return KeyFinding(key, KeyStatus.SPARK)
    if key in FLINK_KEYS:
        return KeyFinding(key, KeyStatus.FLINK)
    # Firesteel knows all of its own keys, so any other one is a mistake.
    own = key.startswith("firesteel.")
    # Flink has many keys that are alike. Only a slip in one that does something is worth an error.
    candidates = [name for name, option in _declared().items() if option.is_used]
    close = difflib.get_close_matches(
        key, candidates, n=1, cutoff=_VAGUELY_CLOSE if own else _CLOSE
    )
    if close or own:
        return KeyFinding(key, KeyStatus.MISSPELLED, close[0] if close else None)
    if key.startswith(FLINK_PREFIXES):
        return KeyFinding(key, KeyStatus.FLINK)
    return KeyFinding(key, KeyStatus.UNKNOWN)


def check_keys(keys: Iterable[str]) -> None:
    """Raise ConfigurationError for a misspelled key; log a note, once, for one without effect."""
    for key in sorted(keys):
        finding = classify_key(key)
        if finding.status is KeyStatus.MISSPELLED:
            hint = f" Did you mean '{finding.suggestion}'?" if finding.suggestion else ""
            raise ConfigurationError(
                f"Unknown setting '{key}'.{hint}", key=key, suggestion=finding.suggestion
            )
        if finding.status is KeyStatus.FLINK:
            _note_once(key, _WITHOUT_EFFECT)
        elif finding.status is KeyStatus.UNKNOWN:
            _note_once(key, "The setting '%s' is unknown to Firesteel and has no effect.")


def note_without_effect(option: Option[Any]) -> None:
    """Log a note, once, for a setting of Flink that code has set and nobody reads."""
    if not option.is_used:
        _note_once(option.key, _WITHOUT_EFFECT)


def _note_once(key: str, message: str) -> None:
    if key not in _noted:
        _noted.add(key)
        _logger.warning(message, key)
