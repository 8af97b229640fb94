"""The base of sinks that write in transactions, so that each record counts exactly once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

from firesteel.datastream.functions.basic import Function
from firesteel.errors import InvalidProgramError, NeverSupportedError


class SinkFunction(Function):
    """Consumes records, in plain Python. After a failure some records may come again.

    PyFlink's class of this name only wraps a Java object; here it is a base class to derive from.

    >>> class Keep(SinkFunction):
    ...     def __init__(self):
    ...         self.seen = []
    ...     def invoke(self, value, context):
    ...         self.seen.append(value)
    >>> keep = Keep()
    >>> keep.invoke("a", None)
    >>> keep.seen
    ['a']
    """

    class Context(ABC):
        @abstractmethod
        def current_processing_time(self) -> int:
            """The wall clock in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int: ...

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's event time in milliseconds. None: it has none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if cls is SinkFunction:
            raise NeverSupportedError(
                "SinkFunction(sink_func)",
                "there is no Java sink to wrap; derive a class from SinkFunction and implement "
                "invoke(value, context)",
            )
        return super().__new__(cls)

    @abstractmethod
    def invoke(self, value: Any, context: SinkFunction.Context) -> None: ...


IN = TypeVar("IN")
TXN = TypeVar("TXN")
CONTEXT = TypeVar("CONTEXT")


class _Transactions(Protocol):
    """The operator that runs the function."""

    user_context: Any

    def current_handle(self) -> Any: ...

    def pending_handles(self) -> Iterator[tuple[int, Any]]: ...


class TwoPhaseCommitSinkFunction(SinkFunction, Generic[IN, TXN, CONTEXT]):
    """Writes records into transactions, which are committed once a checkpoint has completed.

    Flink's Java class, in snake_case; PyFlink has none. A transaction handle is any picklable
    object by which the transaction can be found again, also from another process: it must not hold
    a connection.

    A transaction holds the records of one epoch. At the end of the epoch it is pre-committed; when
    a checkpoint completes, all transactions up to it are committed. What an attempt of a task began
    in vain is aborted. ``commit`` and ``abort`` may be called twice for the same transaction, also
    in different processes, and must then do nothing the second time.
    """

    _transactions: _Transactions | None = None
    _transaction_timeout: int | None = None
    _warning_ratio: float | None = None
    _ignores_failures_after_timeout = False

    # -- to be implemented ---------------------------------------------------------------------

    @abstractmethod
    def begin_transaction(self) -> TXN:
        """Start a transaction, and return its handle."""

    @abstractmethod
    def invoke(  # type: ignore[override]  # Flink's name for two different things
        self, transaction: TXN, value: IN, context: SinkFunction.Context
    ) -> None:
        """Write a record within the transaction."""

    @abstractmethod
    def pre_commit(self, transaction: TXN) -> None:
        """Flush, and prepare so that a later ``commit`` will succeed, whatever process makes it."""

    @abstractmethod
    def commit(self, transaction: TXN) -> None:
        """Make the transaction's records visible; do nothing if they are."""

    @abstractmethod
    def abort(self, transaction: TXN) -> None:
        """Drop the transaction, pre-committed or not; do nothing if it is gone."""

    def recover_and_commit(self, transaction: TXN) -> None:
        """Commit a transaction of the checkpoint from which the job was restored."""
        self.commit(transaction)

    def recover_and_abort(self, transaction: TXN) -> None:
        """Abort a transaction that was begun behind the checkpoint to which the job goes back."""
        self.abort(transaction)

    # -- the user context ----------------------------------------------------------------------

    def initialize_user_context(self) -> CONTEXT | None:
        """Return something to be kept in the state beside the transactions, e.g. a pool of ids.

        Called at the beginning, and where nothing was restored.
        """
        return None

    def finish_recovering_context(self, handled_transactions: Sequence[TXN]) -> None:
        """Called after the job was restored with a user context.

        ``handled_transactions`` have been committed or aborted, or will be at once: others that the
        context knows of, and that are not committed, were left behind.
        """

    def get_user_context(self) -> CONTEXT | None:
        context: CONTEXT | None = self._running().user_context
        return context

    def current_transaction(self) -> TXN | None:
        """The handle of the open transaction."""
        handle: TXN | None = self._running().current_handle()
        return handle

    def pending_transactions(self) -> Iterator[tuple[int, TXN]]:
        """Checkpoints that are not known to be complete, with the transactions that wait for them."""
        return self._running().pending_handles()

    def _running(self) -> _Transactions:
        if self._transactions is None:
            raise InvalidProgramError(
                "transactions and the user context exist only in a task, after open()"
            )
        return self._transactions

    # -- settings ------------------------------------------------------------------------------

    def set_transaction_timeout(self, transaction_timeout: int) -> Self:
        """Say after how many milliseconds the store drops a transaction. No effect in itself."""
        if transaction_timeout < 0:
            raise InvalidProgramError(
                f"transaction_timeout must not be negative: {transaction_timeout!r}"
            )
        self._transaction_timeout = transaction_timeout
        return self

    def enable_transaction_timeout_warnings(self, warning_ratio: float) -> Self:
        """Log a warning when a transaction is committed after this share of the timeout, 0 to 1."""
        if not 0 <= warning_ratio <= 1:
            raise InvalidProgramError(
                f"warning_ratio must be between 0 and 1, not {warning_ratio!r}"
            )
        self._warning_ratio = warning_ratio
        return self

    def ignore_failures_after_transaction_timeout(self) -> Self:
        """Log a failed ``recover_and_commit`` of a timed-out transaction, and go on without it.

        Its records are lost; without this setting the job cannot be restored.
        """
        self._ignores_failures_after_timeout = True
        return self
