"""add_sink with a TwoPhaseCommitSinkFunction: one transaction per epoch that has records.

Flink keeps one transaction from checkpoint to checkpoint, and returns to the checkpoint when a task
is lost. Here a lost task repeats its epoch only, so the writes of its first attempt must be
separable from earlier epochs. The end of an epoch pre-commits, and a checkpoint collects what was
pre-committed since the previous one.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.datastream.functions import TwoPhaseCommitSinkFunction
from firesteel.errors import UserFunctionError
from firesteel.graph.operator_specs import TwoPhaseCommitSinkSpec
from firesteel.protocol.messages import AbandonedState
from firesteel.task.capabilities import Committing, Rescalable
from firesteel.task.operators.base import FunctionOperator, Operator, OperatorContext
from firesteel.task.operators.sink_function import InvocationContext
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode import pickling
from firesteel.usercode.failures import USER_ERRORS


@dataclass(frozen=True, slots=True)
class Transaction:
    """A user's handle with an id, because handles need not be comparable."""

    id: str
    handle: Any
    begun_at: int


@dataclass(frozen=True, slots=True)
class TransactionState:
    """The transactions of one subtask at the end of an epoch.

    execution: the run of the job in which it was written.
    version: counts the epochs.
    """

    execution: str
    version: int
    # The open transaction for the next epoch.
    current: Transaction | None
    # Pre-committed transactions by checkpoint, and those that no checkpoint has taken yet.
    pending: dict[int, tuple[Transaction, ...]]
    unassigned: tuple[Transaction, ...]
    # Transactions that the driver will send back to be committed.
    handed_over: tuple[Transaction, ...]
    user_context: Any = None

    def encode(self) -> bytes:
        return pickling.dumps(self)

    @staticmethod
    def decode(payload: bytes) -> TransactionState:
        state = pickling.loads(payload)
        assert isinstance(state, TransactionState)
        return state

    def pre_committed(self) -> list[Transaction]:
        """All pre-committed transactions, in the order in which they were begun."""
        return [*in_order(self.pending), *self.unassigned]

    def after(self, completed: int) -> list[Transaction]:
        """The transactions that no checkpoint up to ``completed`` holds."""
        later = {number: some for number, some in self.pending.items() if number > completed}
        still_open = () if self.current is None else (self.current,)
        return [*in_order(later), *self.unassigned, *still_open]

    def has(self, transaction: Transaction) -> bool:
        known = (*self.handed_over, *self.pre_committed())
        return any(transaction.id == other.id for other in known)


@dataclass(slots=True)
class OpenTransactions:
    """The transactions of one subtask while an epoch runs."""

    current: Transaction | None = None
    has_records: bool = False
    pending: dict[int, tuple[Transaction, ...]] = field(default_factory=dict)
    unassigned: tuple[Transaction, ...] = ()
    handed_over: tuple[Transaction, ...] = ()
    # The transaction that the last epoch pre-committed, and the version of its state.
    last: tuple[int, Transaction] | None = None


def in_order(pending: dict[int, tuple[Transaction, ...]]) -> list[Transaction]:
    return [transaction for number in sorted(pending) for transaction in pending[number]]


_log = logging.getLogger("firesteel")


class TwoPhaseCommitSinkOperator(FunctionOperator, Committing, Rescalable):
    def __init__(self, spec: TwoPhaseCommitSinkSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        self.function: TwoPhaseCommitSinkFunction[Any, Any, Any]
        self._invocation = InvocationContext(context.clock)
        self._execution = f"{context.subtask.job_id}/{context.subtask.attempt}"
        self._version = 0
        self.transactions = OpenTransactions()
        self._opened = False
        self._restored: TransactionState | None = None
        self._others: list[TransactionState] = []
        self._abandoned: list[Transaction] = []
        self.user_context: Any = None

    # Life

    def open(self) -> None:
        """Open the function, then recover. Unlike in Flink, recovery may use open connections."""
        super().open()
        self._opened = True
        commit = self.function.two_phase_commit
        self.function.two_phase_commit = replace(commit, running=self)
        self._recover(self._restored)
        self._restored = None

    def restore(self, whole: Any) -> None:
        state = None if whole is None else TransactionState.decode(whole)
        if self._opened:
            self._recover(state)
        else:
            self._restored = state

    def restore_several(self, wholes: Sequence[Any]) -> None:
        """After rescaling, also end the transactions of subtasks that no longer exist."""
        first, *others = wholes
        self._others = [TransactionState.decode(whole) for whole in others]
        self.restore(first)

    def replace(self, predecessor: Operator) -> None:
        """Take over the last pre-commit, which may be aborted once the state is known."""
        assert isinstance(predecessor, TwoPhaseCommitSinkOperator)
        self.transactions.last = predecessor.transactions.last

    def restore_failed(self, whole: Any) -> None:
        """Abort the last pre-commit of the predecessor, unless the state has it."""
        state = None if whole is None else TransactionState.decode(whole)
        transaction = self._void_transaction(state)
        if transaction is None:
            return
        self.transactions.last = None
        is_open = self._opened
        try:
            if not is_open:
                super().open()
            self._call(self.function.abort, transaction.handle)
            if not is_open:
                super().close()
        except Exception as error:  # noqa: BLE001 - the first failure counts
            _log.warning("Operator '%s' could not abort a transaction: %s", self.name, error)

    def _void_transaction(self, state: TransactionState | None) -> Transaction | None:
        """Return the last pre-committed transaction of this process, unless ``state`` has it."""
        if self.transactions.last is None:
            return None
        version, transaction = self.transactions.last
        # A state of a later version may lack it because it was committed long ago.
        if state is not None and (state.version > version or state.has(transaction)):
            return None
        return transaction

    def undo(self, abandoned: Sequence[AbandonedState]) -> None:
        self._abandoned = []
        for one in abandoned:
            if one.whole is not None:
                state = TransactionState.decode(pickling.loads(one.whole))
                self._abandoned += state.after(one.completed)
            self._abandoned += one.committables

    def abandon(self, work: AbandonedState) -> None:
        """Abort all transactions that were pre-committed after the last checkpoint of the job."""
        transactions = self.transactions
        numbers = [number for number in sorted(transactions.pending) if number > work.completed]
        later = in_order({number: transactions.pending.pop(number) for number in numbers})
        rest, transactions.unassigned = transactions.unassigned, ()
        self._end_all(self.function.abort, [*later, *rest, *work.committables])

    def close(self) -> None:
        """Abort the open transaction only. Pre-committed ones may belong to a checkpoint."""
        try:
            self._abort_current()
        finally:
            super().close()

    # Writing

    def abort_epoch(self) -> None:
        """Abort what this epoch pre-committed. The driver gets no ack, so it does not know it."""
        last = self.transactions.last
        if last is None or last[0] != self._version + 1:
            return
        self.transactions.last = None
        try:
            self._call(self.function.abort, last[1].handle)
        except UserFunctionError as error:
            _log.warning("Operator '%s' could not abort a transaction: %s", self.name, error)

    def process(self, batch: RecordBatch) -> None:
        values, timestamps = batch.values, batch.timestamps
        transactions, invocation = self.transactions, self._invocation
        assert transactions.current is not None
        transactions.has_records = True
        invoke, transaction = self.function.invoke, transactions.current.handle
        iterator = iter(values)
        try:
            if timestamps is None:
                invocation.element_timestamp = None
                for value in iterator:
                    invoke(transaction, value, invocation)
            else:
                for value, invocation.element_timestamp in zip(iterator, timestamps, strict=True):
                    invoke(transaction, value, invocation)
        except USER_ERRORS as error:
            raise self.failure(error, invoke, values, iterator) from error

    def end_epoch(self, *, finished: bool) -> None:
        self._pre_commit(is_last=finished)
        if finished:
            self._abort_current()

    # Checkpoints

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        if checkpoint_id is None:
            return
        super().snapshot_state(checkpoint_id, timestamp)
        self._pre_commit(is_last=False)
        transactions = self.transactions
        if transactions.unassigned:
            transactions.pending[checkpoint_id] = transactions.unassigned
            transactions.unassigned = ()

    def snapshot(self) -> bytes:
        self._version += 1
        transactions = self.transactions
        state = TransactionState(
            self._execution,
            self._version,
            transactions.current,
            dict(transactions.pending),
            transactions.unassigned,
            transactions.handed_over,
            self.user_context,
        )
        try:
            return state.encode()
        except USER_ERRORS as error:
            raise self.failure(error, self.function.begin_transaction) from error

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Commit everything up to the checkpoint, including earlier ones that never completed."""
        pending = self.transactions.pending
        due = {number: pending.pop(number) for number in sorted(pending) if number <= checkpoint_id}
        self._commit_all(in_order(due))

    def prepare_commit(self, *, finished: bool) -> Sequence[Any]:
        """Hand the rest to the driver after the last record, when no checkpoint may follow."""
        transactions = self.transactions
        if not finished:
            return ()
        rest = [*in_order(transactions.pending), *transactions.unassigned]
        transactions.pending, transactions.unassigned = {}, ()
        transactions.handed_over += tuple(rest)
        return rest

    def commit(self, committables: Sequence[Any]) -> None:
        self._commit_all(committables)

    def _commit_all(self, due: Sequence[Transaction]) -> None:
        last = self.transactions.last
        for transaction in due:
            if last is not None and last[1].id == transaction.id:
                self.transactions.last = None
            self._warn_if_old(transaction)
        self._end_all(self.function.commit, due)

    def _end_all(self, end: Callable[[Any], None], due: Sequence[Transaction]) -> None:
        """Commit or abort all of them, even if one fails, and raise the first error."""
        first_error: Exception | None = None
        for transaction in due:
            self._check_fence()
            try:
                self._call(end, transaction.handle)
            except Exception as error:  # noqa: BLE001 - the first one is raised below
                if first_error is not None:
                    _log.error("Operator '%s' also failed: %s", self.name, error)
                first_error = first_error or error
        if first_error is not None:
            raise first_error

    # Transactions

    def _begin(self) -> None:
        handle = self._call(self.function.begin_transaction)
        now = self.context.clock.now_millis()
        self.transactions.current = Transaction(uuid.uuid4().hex, handle, now)
        self.transactions.has_records = False

    def _abort_current(self) -> None:
        current, self.transactions.current = self.transactions.current, None
        if current is not None:
            self._call(self.function.abort, current.handle)

    def _pre_commit(self, *, is_last: bool) -> None:
        """Pre-commit the open transaction. Without records it stays open for the next epoch."""
        transactions = self.transactions
        current = transactions.current
        if current is None or not transactions.has_records:
            return
        self._call(self.function.pre_commit, current.handle)
        transactions.unassigned = (*transactions.unassigned, current)
        transactions.last = (self._version + 1, current)
        transactions.current = None
        if not is_last:
            self._begin()

    def _recover(self, state: TransactionState | None) -> None:
        aborted = self._abort_attempt(state)
        self.transactions = OpenTransactions()
        self._version = 0 if state is None else state.version
        if state is None:
            self.user_context = self._call(self.function.initialize_user_context)
        elif state.execution == self._execution:
            self._resume(state, aborted)
        else:
            self._recover_execution(state)
        others, self._others = self._others, []
        for other in others:
            self._recover_execution(other)
        self._abort_abandoned([*others] if state is None else [state, *others])
        self._begin()

    def _abort_attempt(self, state: TransactionState | None) -> set[str]:
        """Abort the transactions of an abandoned attempt in this process, and return their ids."""
        void, current = self._void_transaction(state), self.transactions.current
        abandoned = [one for one in (void, current) if one is not None]
        for transaction in abandoned:
            self._call(self.function.abort, transaction.handle)
        return {transaction.id for transaction in abandoned}

    def _resume(self, state: TransactionState, aborted: set[str]) -> None:
        """Continue the job. An epoch is repeated, perhaps in a different process."""
        self.user_context = state.user_context
        self.transactions.pending = dict(state.pending)
        self.transactions.unassigned = state.unassigned
        self.transactions.handed_over = state.handed_over
        if state.current is not None and state.current.id not in aborted:
            self._call(self.function.recover_and_abort, state.current.handle)

    def _recover_execution(self, state: TransactionState) -> None:
        """Commit what the checkpoint of a restored job holds, and abort the rest."""
        # The driver will soon ask to commit the transactions that were handed over.
        self.transactions.handed_over += state.handed_over
        handled = [transaction.handle for transaction in state.handed_over]
        for transaction in state.pre_committed():
            self._recover_and_commit(transaction)
            handled.append(transaction.handle)
        if state.current is not None:
            self._call(self.function.recover_and_abort, state.current.handle)
            handled.append(state.current.handle)
        if state.user_context is None:
            self.user_context = self._call(self.function.initialize_user_context)
        else:
            self.user_context = state.user_context
            self._call(self.function.finish_recovering_context, handled)

    def _abort_abandoned(self, restored: Sequence[TransactionState]) -> None:
        """Abort what failed attempts began after the checkpoint. It will be written again."""
        known = {transaction.id for state in restored for transaction in state.after(-1)}
        abandoned, self._abandoned = self._abandoned, []
        for transaction in abandoned:
            if transaction.id not in known:
                known.add(transaction.id)
                self._call(self.function.recover_and_abort, transaction.handle)

    def _check_fence(self) -> None:
        """Raise LeadershipLostError if a different master runs the job now.

        It is called before each commit and abort: the process may have been frozen during the last
        one. An old master must not abort either, because the next one may have the transaction in
        its checkpoint.
        """
        fence = self.context.subtask.fence
        if fence is not None:
            fence.check()

    def _recover_and_commit(self, transaction: Transaction) -> None:
        self._warn_if_old(transaction)
        self._check_fence()
        try:
            self._call(self.function.recover_and_commit, transaction.handle)
        except Exception:
            commit = self.function.two_phase_commit
            timeout = commit.transaction_timeout
            is_over = timeout is not None and self._age(transaction) > timeout
            if not (is_over and commit.ignores_failures_after_timeout):
                raise
            _log.exception(
                "Operator '%s' could not commit the transaction %s, which has been open for longer "
                "than its timeout of %d ms. The sink abandons it, so its records may be lost.",
                self.name,
                transaction.handle,
                timeout,
            )

    def _warn_if_old(self, transaction: Transaction) -> None:
        commit = self.function.two_phase_commit
        timeout, ratio = commit.transaction_timeout, commit.warning_ratio
        if timeout is None or ratio is None:
            return
        age = self._age(transaction)
        if age > timeout * ratio:
            _log.warning(
                "Operator '%s': the transaction %s has been open for %d ms, which is close to the "
                "transaction timeout of %d ms or exceeds it.",
                self.name,
                transaction.handle,
                age,
                timeout,
            )

    def _age(self, transaction: Transaction) -> int:
        return self.context.clock.now_millis() - transaction.begun_at

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return method(*arguments)
        except USER_ERRORS as error:
            raise self.failure(error, method) from error

    # For the function

    def current_handle(self) -> Any:
        current = self.transactions.current
        return None if current is None else current.handle

    def pending_handles(self) -> Iterator[tuple[int, Any]]:
        for number, transactions in sorted(self.transactions.pending.items()):
            for transaction in transactions:
                yield number, transaction.handle
