"""What every user function has: a life that begins with open() and ends with close()."""

from __future__ import annotations

from abc import ABC
from typing import Any

from firesteel.datastream.functions.runtime_context import RuntimeContext


class Function(ABC):  # noqa: B024 - the kinds of functions have the abstract methods
    """Base of all user functions.

    The object is pickled on the driver and lives in one slot for as long as the job runs, so what
    ``open`` puts into ``self`` (connections, buffers, metrics) is there for every record.
    """

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027 - optional to override
        """Called once per subtask, before the first record."""

    def close(self) -> None:  # noqa: B027 - optional to override
        """Called once per subtask, after the last record, on cancellation and on failure."""

    def __setstate__(self, state: Any) -> None:
        """Arrive in a task with attributes as fast as they were where the function was made.

        Pickle fills an object's ``__dict__`` as a whole. CPython keeps the attributes of such an
        object outside of it, and a method that counts up ``self.count`` takes twice as long.
        """
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        for name, value in {**(attributes or {}), **(slots or {})}.items():
            object.__setattr__(self, name, value)
