"""Sink functions, and sinks that write in transactions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

from firesteel.datastream.functions.basic import Function
from firesteel.errors import InvalidProgramError, NeverSupportedError
from firesteel.stability import public_evolving


class SinkFunction(Function):
    """Writes records, in plain Python. After a failure some records may come again.

    PyFlink's class of this name only wraps a Java object. Here it is a base class to derive from.

    >>> class Shout(SinkFunction):
    ...     def invoke(self, value, context):
    ...         print(value.upper(), context.timestamp())
    >>> sink = env.from_collection(["a", "b"]).add_sink(Shout())
    >>> result = env.execute()
    A None
    B None
    """

    class Context(ABC):
        """The time of the record, and the clocks."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the clock of the subtask, in milliseconds since 1970.

            >>> class Stamp(SinkFunction):
            ...     def invoke(self, value, context):
            ...         print(value, context.current_processing_time(), context.current_watermark())
            """

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the watermark in milliseconds, or the smallest long before the first one.

            >>> class Late(SinkFunction):
            ...     def invoke(self, value, context):
            ...         print(value, context.timestamp() <= context.current_watermark())
            """

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the time of the record in milliseconds, or None if it has none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if cls is SinkFunction:
            raise NeverSupportedError(
                "SinkFunction(sink_func)",
                "there is no Java sink to wrap; derive a class from SinkFunction and implement "
                "invoke(value, context)",
            )
        return super().__new__(cls)

    @abstractmethod
    @public_evolving
    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Write a record. Not in PyFlink.

        Args:
            value: The record.
            context: Its time, and the clocks.
        """


IN = TypeVar("IN")
TXN = TypeVar("TXN")
CONTEXT = TypeVar("CONTEXT")


class _RunningTransactions(Protocol):
    """The transactions of a subtask, as the operator that runs the function keeps them."""

    user_context: Any

    def current_handle(self) -> Any: ...

    def pending_handles(self) -> Iterator[tuple[int, Any]]: ...


@dataclass(frozen=True, slots=True)
class TwoPhaseCommit:
    """Settings of a TwoPhaseCommitSinkFunction, and its transactions while it runs.

    Args:
        transaction_timeout: Milliseconds after which the store drops a transaction, or None.
        warning_ratio: The share of the timeout after which a commit logs a warning, or None.
        ignores_failures_after_timeout: Log a failed commit of a timed-out transaction only.
        running: The transactions of the subtask, or None outside a task.
    """

    transaction_timeout: int | None = None
    warning_ratio: float | None = None
    ignores_failures_after_timeout: bool = False
    running: _RunningTransactions | None = None


@public_evolving
class TwoPhaseCommitSinkFunction(SinkFunction, Generic[IN, TXN, CONTEXT]):
    r"""Writes records into transactions, which are committed when a checkpoint completes. Not in PyFlink.

    It is Flink's Java class, in snake_case. A transaction handle is any picklable object by which any
    process can find the transaction: it must not hold a connection.

    A transaction holds the records of one epoch. At the end of the epoch it is pre-committed. When a
    checkpoint completes, all transactions up to it are committed. Transactions of a failed attempt are
    aborted. ``commit`` and ``abort`` may be called twice for the same transaction, also in different
    processes, and must then do nothing the second time.

    >>> from pathlib import Path
    >>> import uuid
    >>> class Files(TwoPhaseCommitSinkFunction):
    ...     def begin_transaction(self):
    ...         return uuid.uuid4().hex
    ...     def invoke(self, transaction, value, context):
    ...         with open(f"{transaction}.open", "a") as file:
    ...             file.write(f"{value}\n")
    ...     def pre_commit(self, transaction):
    ...         Path(f"{transaction}.open").touch()
    ...     def commit(self, transaction):
    ...         if Path(f"{transaction}.open").exists():
    ...             Path(f"{transaction}.open").rename(f"{transaction}.txt")
    ...     def abort(self, transaction):
    ...         Path(f"{transaction}.open").unlink(missing_ok=True)
    >>> sink = env.from_collection(["a", "b"]).add_sink(Files())
    >>> result = env.execute()
    >>> "".join(path.read_text() for path in Path(".").glob("*.txt")).split()
    ['a', 'b']
    """

    # A class attribute: subclasses need not call __init__.
    two_phase_commit = TwoPhaseCommit()

    # -- to be implemented ---------------------------------------------------------------------

    @abstractmethod
    def begin_transaction(self) -> TXN:
        """Start a transaction, and return its handle."""

    @abstractmethod
    def invoke(  # type: ignore[override]  # Flink's name for two different things
        self, transaction: TXN, value: IN, context: SinkFunction.Context
    ) -> None:
        """Write a record into a transaction.

        Args:
            transaction: The handle of the open transaction.
            value: The record.
            context: Its time, and the clocks.
        """

    @abstractmethod
    def pre_commit(self, transaction: TXN) -> None:
        """Flush, and prepare so that a later ``commit`` in any process succeeds.

        Args:
            transaction: The handle.
        """

    @abstractmethod
    def commit(self, transaction: TXN) -> None:
        """Make the records of a transaction visible. Do nothing if they are.

        Args:
            transaction: The handle.
        """

    @abstractmethod
    def abort(self, transaction: TXN) -> None:
        """Drop a transaction, pre-committed or not. Do nothing if it is gone.

        Args:
            transaction: The handle.
        """

    def recover_and_commit(self, transaction: TXN) -> None:
        """Commit a transaction of the checkpoint that the job was restored from. By default ``commit`` does it.

        Args:
            transaction: The handle.

        >>> class Loud(TwoPhaseCommitSinkFunction):
        ...     def recover_and_commit(self, transaction):
        ...         print("commit after a restore:", transaction)
        ...         self.commit(transaction)
        """
        self.commit(transaction)

    def recover_and_abort(self, transaction: TXN) -> None:
        """Abort a transaction that began after the restored checkpoint. By default ``abort`` does it.

        Args:
            transaction: The handle.

        >>> class Loud(TwoPhaseCommitSinkFunction):
        ...     def recover_and_abort(self, transaction):
        ...         print("abort after a restore:", transaction)
        ...         self.abort(transaction)
        """
        self.abort(transaction)

    # -- the user context ----------------------------------------------------------------------

    def initialize_user_context(self) -> CONTEXT | None:
        """Return an object to keep in the state with the transactions, for example a pool of ids.

        Called when the job starts without a restored user context.

        >>> class Pooled(TwoPhaseCommitSinkFunction):
        ...     def initialize_user_context(self):
        ...         return ["id-1", "id-2"]
        ...     def begin_transaction(self):
        ...         return self.get_user_context().pop()
        ...     def finish_recovering_context(self, handled_transactions):
        ...         print("restored with", self.get_user_context())
        """
        return None

    def finish_recovering_context(self, handled_transactions: Sequence[TXN]) -> None:
        """Called after the job was restored with a user context.

        Args:
            handled_transactions: Transactions that have been committed or aborted, or will be at once.
                Other open transactions that the context knows of were left behind.

        >>> class Cleaning(TwoPhaseCommitSinkFunction):
        ...     def finish_recovering_context(self, handled_transactions):
        ...         for left in set(self.get_user_context()) - set(handled_transactions):
        ...             self.abort(left)
        """

    def get_user_context(self) -> CONTEXT | None:
        """Return the user context.

        >>> class Pooled(TwoPhaseCommitSinkFunction):
        ...     def begin_transaction(self):
        ...         return self.get_user_context().pop()
        """
        context: CONTEXT | None = self._running().user_context
        return context

    def current_transaction(self) -> TXN | None:
        """Return the handle of the open transaction.

        >>> class Showing(TwoPhaseCommitSinkFunction):
        ...     def close(self):
        ...         print("open at the end:", self.current_transaction())
        """
        handle: TXN | None = self._running().current_handle()
        return handle

    def pending_transactions(self) -> Iterator[tuple[int, TXN]]:
        """Return pairs of a checkpoint that may not be complete and a transaction that waits for it.

        >>> class Showing(TwoPhaseCommitSinkFunction):
        ...     def close(self):
        ...         print("not committed:", list(self.pending_transactions()))
        """
        return self._running().pending_handles()

    def _running(self) -> _RunningTransactions:
        if self.two_phase_commit.running is None:
            raise InvalidProgramError(
                "transactions and the user context exist only in a task, after open()"
            )
        return self.two_phase_commit.running

    # -- settings ------------------------------------------------------------------------------

    def set_transaction_timeout(self, transaction_timeout: int) -> Self:
        """Declare the time after which the store drops a transaction. Firesteel itself drops none.

        Args:
            transaction_timeout: Milliseconds.

        >>> class Sink(TwoPhaseCommitSinkFunction):
        ...     def __init__(self):
        ...         self.set_transaction_timeout(60_000).enable_transaction_timeout_warnings(0.8)
        ...         self.ignore_failures_after_transaction_timeout()
        """
        if transaction_timeout < 0:
            raise InvalidProgramError(
                f"transaction_timeout must not be negative: {transaction_timeout!r}"
            )
        self.two_phase_commit = replace(
            self.two_phase_commit, transaction_timeout=transaction_timeout
        )
        return self

    def enable_transaction_timeout_warnings(self, warning_ratio: float) -> Self:
        """Log a warning if a commit comes after a share of the timeout.

        Args:
            warning_ratio: A number from 0 to 1.

        >>> class Sink(TwoPhaseCommitSinkFunction):
        ...     def __init__(self):
        ...         self.set_transaction_timeout(60_000).enable_transaction_timeout_warnings(0.8)
        """
        if not 0 <= warning_ratio <= 1:
            raise InvalidProgramError(
                f"warning_ratio must be between 0 and 1, not {warning_ratio!r}"
            )
        self.two_phase_commit = replace(self.two_phase_commit, warning_ratio=warning_ratio)
        return self

    def ignore_failures_after_transaction_timeout(self) -> Self:
        """Log a failed ``recover_and_commit`` of a timed-out transaction, and continue without it.

        Its records are lost. Without this setting the job cannot be restored.

        >>> class Sink(TwoPhaseCommitSinkFunction):
        ...     def __init__(self):
        ...         self.set_transaction_timeout(60_000).ignore_failures_after_transaction_timeout()
        """
        self.two_phase_commit = replace(self.two_phase_commit, ignores_failures_after_timeout=True)
        return self
