"""Whether a person sits in front of the interpreter."""

from __future__ import annotations

import sys


def is_interactive() -> bool:
    """A prompt or a notebook, which goes on after an error; a script ends."""
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules
