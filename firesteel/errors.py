"""Firesteel's one exception tree.

Every class keeps its facts as fields, survives pickling (errors travel from tasks to the
driver), and derives from the builtin one would expect.
"""

from __future__ import annotations

import errno
import reprlib
from typing import Any

# The disk is full, or the user's share of it.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)

__all__ = [
    "ChannelSequenceError",
    "ConfigurationError",
    "FiresteelError",
    "InsufficientSlotsError",
    "InvalidProgramError",
    "JobCancelledError",
    "JobExecutionError",
    "NeverSupportedError",
    "NotYetSupportedError",
    "TypeMismatchError",
    "UnsavedStateError",
    "UnstableKeyError",
    "UserFunctionError",
    "WriteFailedError",
    "shorten",
]


def shorten(value: object, limit: int = 200) -> str:
    """Return ``repr(value)``, cut in the middle to at most ``limit`` characters.

    Never fails: a record whose own ``__repr__`` raises must not hide the real error.
    """
    shortener = reprlib.Repr()
    shortener.maxlevel = 8
    shortener.maxtuple = shortener.maxlist = shortener.maxdict = shortener.maxset = 50
    shortener.maxarray = shortener.maxdeque = shortener.maxfrozenset = 50
    shortener.maxstring = shortener.maxlong = shortener.maxother = limit
    try:
        text = shortener.repr(value)
    except Exception as error:  # noqa: BLE001  # a user's __repr__ may raise anything
        text = f"<{type(value).__qualname__} whose repr() raised {type(error).__name__}>"
    if len(text) <= limit:
        return text
    head = max(0, (limit - 3) // 2)
    tail = max(0, limit - 3 - head)
    return text[:head] + "..." + text[len(text) - tail :]


def _restore(
    cls: type[FiresteelError], args: tuple[Any, ...], fields: dict[str, Any]
) -> FiresteelError:
    """Rebuild an error without its ``__init__``, whose arguments differ from ``args``."""
    error = cls.__new__(cls, *args)
    error.__dict__.update(fields)
    return error


class FiresteelError(Exception):
    """Base of all errors that Firesteel raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, dict(self.__dict__))


class ConfigurationError(FiresteelError, ValueError):
    """A setting is unknown, misspelled, or has a value that does not parse."""

    def __init__(
        self, message: str, *, key: str | None = None, suggestion: str | None = None
    ) -> None:
        super().__init__(message)
        self.key = key
        self.suggestion = suggestion


class InvalidProgramError(FiresteelError, ValueError):
    """The program cannot be turned into a job graph."""


class _UnsupportedError(FiresteelError, NotImplementedError):
    """Shared shape of the two errors for names of Flink that Firesteel does not run."""

    _when = "is not supported"

    def __init__(self, name: str, reason: str = "") -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        sentence = f"{self.name} {self._when}"
        return f"{sentence}: {self.reason}" if self.reason else f"{sentence}."


class NotYetSupportedError(_UnsupportedError):
    """Flink has it, Firesteel will have it, but not in this version."""

    _when = "is not yet supported by Firesteel"


class NeverSupportedError(_UnsupportedError):
    """Flink has it, but it makes no sense without Flink's JVM."""

    _when = "is not supported by Firesteel and never will be"


class TypeMismatchError(FiresteelError, TypeError):
    """A value does not fit the type that was declared for it.

    ``value`` and ``type`` are kept as text, so the error pickles whatever the value is. Whoever
    knows the operator sets ``operator`` on the way out.
    """

    def __init__(
        self, value: object, type: object, reason: str, operator: str | None = None
    ) -> None:
        super().__init__(reason)
        self.value = shorten(value)
        self.type = str(type)
        self.reason = reason
        self.operator = operator

    def __str__(self) -> str:
        where = f"Operator '{self.operator}': " if self.operator else ""
        return f"{where}the value {self.value} does not fit the type {self.type}: {self.reason}"


class UserFunctionError(FiresteelError, RuntimeError):
    """A user's function raised. The user's own traceback comes first in the message."""

    def __init__(
        self,
        *,
        job: str,
        operator: str,
        function: str,
        file: str | None,
        line: int | None,
        record: str | None,
        traceback_text: str,
        cause: str = "",
    ) -> None:
        """``cause`` is the name of the error's class; the error itself may not be able to travel."""
        super().__init__(function)
        self.job = job
        self.operator = operator
        self.function = function
        self.file = file
        self.line = line
        self.record = record
        self.traceback_text = traceback_text
        self.cause = cause

    def __str__(self) -> str:
        place = f" ({self.file}:{self.line})" if self.file is not None else ""
        record = f" on the record {self.record}" if self.record is not None else ""
        return (
            f"{self.traceback_text.rstrip()}\n\n"
            f"Job '{self.job}' failed: operator '{self.operator}' called "
            f"{self.function}{place}{record}, which raised the error above."
        )


class WriteFailedError(FiresteelError, OSError):
    """A file could not be written, for example because the disk is full.

    Whoever knows the operator sets ``operator`` on the way out.
    """

    def __init__(
        self, path: str, error_number: int | None, reason: str, operator: str | None = None
    ) -> None:
        super().__init__(error_number, reason)
        self.path = path
        self.reason = reason
        self.operator = operator

    @staticmethod
    def of(path: object, error: OSError) -> OSError:
        """What to raise where writing ``path`` raised ``error``."""
        if isinstance(error, FiresteelError):
            return error
        return WriteFailedError(str(path), error.errno, error.strerror or str(error))

    def __reduce__(self) -> tuple[Any, ...]:
        # OSError keeps its number in a slot of its own, which the general way would lose.
        return type(self), (self.path, self.errno, self.reason, self.operator)

    def __str__(self) -> str:
        who = f"Operator '{self.operator}'" if self.operator else "Firesteel"
        hint = ""
        if self.errno in _NO_SPACE:
            hint = " Free some space there, or write to another place."
        return f"{who} could not write {self.path}: {self.reason}.{hint}"


class InsufficientSlotsError(FiresteelError, RuntimeError):
    """The job needs more slots than Spark can run at once."""

    def __init__(self, required: int, available: int) -> None:
        super().__init__(required, available)
        self.required = required
        self.available = available

    def __str__(self) -> str:
        return (
            f"The job needs {self.required} task slots, but Spark offers {self.available}. Lower "
            f"the parallelism to {self.available}, or give Spark more cores (for example "
            f"firesteel.spark.master: local[{self.required}])."
        )


class JobExecutionError(FiresteelError, RuntimeError):
    """A job ended in failure."""

    def __init__(
        self, message: str, *, job_id: str | None = None, job_name: str | None = None
    ) -> None:
        super().__init__(message)
        self.job_id = job_id
        self.job_name = job_name


class JobCancelledError(FiresteelError, RuntimeError):
    """The job's result was asked for, but the job was canceled."""

    def __init__(self, job_id: str | None = None) -> None:
        super().__init__(job_id)
        self.job_id = job_id

    def __str__(self) -> str:
        return f"Job {self.job_id} was canceled." if self.job_id else "The job was canceled."


class UnstableKeyError(FiresteelError, TypeError):
    """A key whose hash differs between processes would land in different slots."""

    def __init__(self, value: object, reason: str, operator: str | None = None) -> None:
        super().__init__(reason)
        self.value = shorten(value)
        self.reason = reason
        self.operator = operator

    def __str__(self) -> str:
        where = f"Operator '{self.operator}': " if self.operator else ""
        return f"{where}{self.value} cannot be a key: {self.reason}"


class UnsavedStateError(FiresteelError, RuntimeError):
    """A slot is gone, and with it what a CheckpointedFunction had not saved yet."""

    def __init__(self, operator: str) -> None:
        super().__init__(operator)
        self.operator = operator

    def __str__(self) -> str:
        return (
            f"Operator '{self.operator}' has to start again in the middle of the job, but its "
            "CheckpointedFunction has worked since the last checkpoint, and saves itself only then. "
            "The job must go back to that checkpoint: enable checkpoints and a restart strategy, or "
            "keep what must not be lost in keyed state."
        )


class RescalingError(FiresteelError, RuntimeError):
    """State that only fits the parallelism it was written with."""

    def __init__(self, operator: str) -> None:
        super().__init__(operator)
        self.operator = operator

    def __str__(self) -> str:
        return (
            f"Operator '{self.operator}' keeps state that cannot be handed to another number of "
            "subtasks. Start it with the parallelism that the checkpoint or savepoint was taken with."
        )


class ChannelSequenceError(FiresteelError, RuntimeError):
    """Buffers of a channel came out of order, twice, or not at all."""

    def __init__(self, channel: str, expected: int, actual: int) -> None:
        super().__init__(channel, expected, actual)
        self.channel = channel
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return (
            f"Channel {self.channel}: expected buffer {self.expected} next, but got {self.actual}. "
            f"Records were lost or repeated on the way, so the job must not go on."
        )
