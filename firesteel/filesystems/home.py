"""The directory of a user for sessions, and for keys of groups of masters."""

from __future__ import annotations

import os
from pathlib import Path

HOME_VARIABLE = "FIRESTEEL_HOME"


def home_directory() -> Path:
    """Return the directory that ``FIRESTEEL_HOME`` names, or ``~/.firesteel``."""
    home = os.environ.get(HOME_VARIABLE)
    return Path(home) if home else Path.home() / ".firesteel"
