"""Processes of the machine."""

from __future__ import annotations

import os


def is_alive(pid: int) -> bool:
    """Return True if a process has this id, of any user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
