"""Firesteel's one exception tree.

Every class keeps its facts as fields, survives pickling (errors travel from tasks to the
driver), and derives from the builtin one would expect.
"""

from __future__ import annotations

import errno
import reprlib
from typing import Any

# The disk is full, or the quota of the user is used up.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)

__all__ = [
    "ChannelSequenceError",
    "ConfigurationError",
    "FiresteelError",
    "InsufficientSlotsError",
    "InvalidProgramError",
    "JobCancelledError",
    "JobExecutionError",
    "LeadershipLostError",
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


def restore_error(
    cls: type[FiresteelError], args: tuple[Any, ...], fields: dict[str, Any]
) -> FiresteelError:
    """Rebuild an error without its ``__init__``, whose arguments differ from ``args``."""
    error = cls.__new__(cls, *args)
    if isinstance(error, OSError):
        # OSError sets number and text in __init__ if a subclass has an __init__ of its own.
        OSError.__init__(error, *args)
    error.__dict__.update(fields)
    return error


class FiresteelError(Exception):
    """Base class of all errors that Firesteel raises on purpose.

    Each error also derives from the built-in class that fits, so ``except ValueError`` catches an
    InvalidProgramError.

    >>> from firesteel.errors import FiresteelError, InvalidProgramError
    >>> issubclass(InvalidProgramError, FiresteelError), issubclass(InvalidProgramError, ValueError)
    (True, True)
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_error, (type(self), self.args, dict(self.__dict__))


class ConfigurationError(FiresteelError, ValueError):
    """A setting is unknown or misspelled, or its value has the wrong form.

    Attributes:
        key: The key of the setting, or None.
        suggestion: A known key with a similar name, or None.

    >>> env.get_config().to_configuration().set_string("parallelism.default", "many")
    Configuration({'parallelism.default': 'many'})
    >>> env.get_parallelism()
    Traceback (most recent call last):
    firesteel.errors.ConfigurationError: parallelism.default: ..., got 'many'.
    """

    def __init__(
        self, message: str, *, key: str | None = None, suggestion: str | None = None
    ) -> None:
        super().__init__(message)
        self.key = key
        self.suggestion = suggestion


class InvalidProgramError(FiresteelError, ValueError):
    """The program cannot become a job graph.

    >>> env.execute()
    Traceback (most recent call last):
    firesteel.errors.InvalidProgramError: ...
    """


class _UnsupportedError(FiresteelError, NotImplementedError):
    """Base class of the errors for names of Flink that Firesteel does not run."""

    _when = "is not supported"

    def __init__(self, name: str, reason: str = "") -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        sentence = f"{self.name} {self._when}"
        return f"{sentence}: {self.reason}" if self.reason else f"{sentence}."


class NotYetSupportedError(_UnsupportedError):
    """This version of Firesteel does not have a feature of Flink that a later one may have.

    Attributes:
        name: The name in Flink's API.
        reason: The reason, or an alternative.

    >>> from firesteel.datastream.connectors.pulsar import PulsarSource
    Traceback (most recent call last):
    firesteel.gaps.NotYetImportError: ...PulsarSource is not yet supported by Firesteel...
    """

    _when = "is not yet supported by Firesteel"


class NeverSupportedError(_UnsupportedError):
    """Firesteel will not have a feature of Flink, because it needs Flink's JVM.

    Attributes:
        name: The name in Flink's API.
        reason: The reason, or an alternative.

    >>> env.get_config().enable_force_kryo()
    Traceback (most recent call last):
    firesteel.errors.NeverSupportedError: ExecutionConfig.enable_force_kryo is not supported ...
    """

    _when = "is not supported by Firesteel and never will be"


class TypeMismatchError(FiresteelError, TypeError):
    """A value does not fit the declared type.

    The value and the type are text, so that the error can always be pickled.

    Attributes:
        value: The value.
        type: The declared type.
        reason: The difference.
        operator: The name of the operator, or None if the error did not pass through one.

    >>> from firesteel.errors import TypeMismatchError
    >>> words = env.from_collection(["be"]).map(lambda word: word, output_type=Types.INT())
    >>> try:
    ...     list(words.execute_and_collect())
    ... except TypeMismatchError as error:
    ...     print(error.reason)
    expected int, got str.
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
    """A function of the user raised an error. The message starts with the user's traceback.

    Attributes:
        job: The name of the job.
        operator: The name of the operator.
        function: The name of the function.
        file: The file of the function, or None.
        line: The first line of the function, or None.
        record: The text of the record, or None if no record was processed.
        traceback_text: The user's traceback.
        cause: The name of the error's class.

    >>> from firesteel.errors import UserFunctionError
    >>> def invert(number):
    ...     return 1 / number
    >>> stream = env.from_collection([2, 0]).map(invert).name("invert")
    >>> try:
    ...     list(stream.execute_and_collect())
    ... except UserFunctionError as error:
    ...     print(error.operator, error.function, error.record, error.cause)
    invert invert 0 ZeroDivisionError
    """

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
        """Create the error from text, because the user's error may not be picklable."""
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

    Attributes:
        path: The file.
        reason: The reason of the operating system.
        operator: The name of the operator, or None if the error did not pass through one.

    >>> import errno
    >>> from firesteel.errors import WriteFailedError
    >>> print(WriteFailedError("/data/part-0", errno.ENOSPC, "No space left on device", "Sink"))
    Operator 'Sink' could not write /data/part-0: No space left on device. Free ...
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
        """Return the error to raise when writing a file failed.

        Args:
            path: The file.
            error: The error of the operating system. An error of Firesteel is returned unchanged.

        >>> from firesteel.errors import WriteFailedError
        >>> print(WriteFailedError.of("/data/part-0", PermissionError(13, "Permission denied")))
        Firesteel could not write /data/part-0: Permission denied.
        """
        if isinstance(error, FiresteelError):
            return error
        return WriteFailedError(str(path), error.errno, error.strerror or str(error))

    def __str__(self) -> str:
        who = f"Operator '{self.operator}'" if self.operator else "Firesteel"
        hint = ""
        if self.errno in _NO_SPACE:
            hint = " Free some space there, or write to a different location."
        return f"{who} could not write {self.path}: {self.reason}.{hint}"


class InsufficientSlotsError(FiresteelError, RuntimeError):
    """The job needs more slots than Spark can run at the same time.

    Attributes:
        required: The number of slots of the job.
        available: The number of slots that Spark offers.

    >>> from firesteel.errors import InsufficientSlotsError
    >>> print(InsufficientSlotsError(required=8, available=4))
    The job needs 8 task slots, but Spark offers 4. Lower the parallelism to 4, or ...
    """

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
    """A job failed, and the cause is not a function of the user.

    Attributes:
        job_id: The id of the job, or None.
        job_name: The name of the job, or None.

    >>> from firesteel.errors import JobExecutionError
    >>> JobExecutionError("The driver lost all slots.", job_name="orders").job_name
    'orders'
    """

    def __init__(
        self, message: str, *, job_id: str | None = None, job_name: str | None = None
    ) -> None:
        super().__init__(message)
        self.job_id = job_id
        self.job_name = job_name


class JobCancelledError(FiresteelError, RuntimeError):
    """A result was requested from a canceled job.

    Attributes:
        job_id: The id of the job, or None.

    >>> from firesteel.testing import ScriptedSource
    >>> endless = ScriptedSource([1], bounded=False)
    >>> sink = env.from_source(endless, WatermarkStrategy.no_watermarks(), "numbers").print()
    >>> client = env.execute_async()
    1
    >>> client.cancel().result()
    >>> client.get_job_execution_result().result()
    Traceback (most recent call last):
    firesteel.errors.JobCancelledError: Job ... was canceled.
    """

    def __init__(self, job_id: str | None = None) -> None:
        super().__init__(job_id)
        self.job_id = job_id

    def __str__(self) -> str:
        return f"Job {self.job_id} was canceled." if self.job_id else "The job was canceled."


class LeadershipLostError(FiresteelError, RuntimeError):
    """A different master leads now. This one must not change anything any more.

    Attributes:
        term: The number of the leadership that has ended.
        reason: The fact that shows it.

    >>> from firesteel.errors import LeadershipLostError
    >>> str(LeadershipLostError(7, "term 8 has begun"))
    'This master no longer leads (its term was 7): term 8 has begun.'
    """

    def __init__(self, term: int, reason: str) -> None:
        super().__init__(term, reason)
        self.term = term
        self.reason = reason

    def __str__(self) -> str:
        return f"This master no longer leads (its term was {self.term}): {self.reason}."


class UnstableKeyError(FiresteelError, TypeError):
    """A key has a hash that differs between processes, so its records would reach different slots.

    Attributes:
        value: The key.
        reason: The reason.
        operator: The name of the operator, or None if the error did not pass through one.

    The job fails with a UserFunctionError that names the function of ``key_by``.

    >>> from firesteel.errors import UserFunctionError
    >>> class Point:
    ...     pass
    >>> keyed = env.from_collection([1]).key_by(lambda number: Point()).map(lambda number: number)
    >>> try:
    ...     list(keyed.execute_and_collect())
    ... except UserFunctionError as error:
    ...     print(error.cause, error.record)
    UnstableKeyError 1
    """

    def __init__(self, value: object, reason: str, operator: str | None = None) -> None:
        super().__init__(reason)
        self.value = shorten(value)
        self.reason = reason
        self.operator = operator

    def __str__(self) -> str:
        where = f"Operator '{self.operator}': " if self.operator else ""
        return f"{where}{self.value} cannot be a key: {self.reason}"


class UnsavedStateError(FiresteelError, RuntimeError):
    """A slot was lost with state that a CheckpointedFunction had not saved.

    Attributes:
        operator: The name of the operator.

    >>> from firesteel.errors import UnsavedStateError
    >>> print(UnsavedStateError("buffer"))
    Operator 'buffer' lost unsaved state of its CheckpointedFunction. ...
    """

    def __init__(self, operator: str) -> None:
        super().__init__(operator)
        self.operator = operator

    def __str__(self) -> str:
        return (
            f"Operator '{self.operator}' lost unsaved state of its CheckpointedFunction. Its slot "
            "was lost after the last checkpoint, and the function saves its state only in "
            "checkpoints. The job must go back to that checkpoint. Enable checkpoints and a "
            "restart strategy, or use keyed state, which survives the loss of a slot."
        )


class RescalingError(FiresteelError, RuntimeError):
    """State fits only the parallelism with which it was written."""

    def __init__(self, operator: str) -> None:
        super().__init__(operator)
        self.operator = operator

    def __str__(self) -> str:
        return (
            f"Operator '{self.operator}' has state that cannot be divided among a different number "
            "of subtasks. Start the operator with the parallelism of the checkpoint or savepoint."
        )


class ChannelSequenceError(FiresteelError, RuntimeError):
    """Buffers of a channel arrived out of order, twice, or not at all. The job restarts.

    Attributes:
        channel: The channel.
        expected: The number of the expected buffer.
        actual: The number of the buffer that arrived.

    >>> from firesteel.errors import ChannelSequenceError
    >>> print(ChannelSequenceError("Map -> Sink", expected=3, actual=5))
    Channel Map -> Sink: expected buffer 3 next, but got 5. ...
    """

    def __init__(self, channel: str, expected: int, actual: int) -> None:
        super().__init__(channel, expected, actual)
        self.channel = channel
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return (
            f"Channel {self.channel}: expected buffer {self.expected} next, but got {self.actual}. "
            f"Records were lost or repeated, so the job must not continue."
        )
