"""InputDependencyConstraint, a rule for the start of tasks."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """The rule after which a task of a batch job starts in Flink.

    ANY starts it when one input is ready, ALL when all inputs are ready. Firesteel starts all tasks
    together, so the value has no effect.

    >>> InputDependencyConstraint.ANY.name, InputDependencyConstraint.ALL.name
    ('ANY', 'ALL')
    """

    ANY = 0
    ALL = 1
