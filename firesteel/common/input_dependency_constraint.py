"""When a task may be scheduled."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """Whether a task starts once any of its inputs is ready, or only with all of them."""

    ANY = 0
    ALL = 1
