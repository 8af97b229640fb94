"""What a two-phase-commit sink knows of its transactions, and how that becomes state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from firesteel import pickling


@dataclass(frozen=True, slots=True)
class Transaction:
    """A handle of the user's. ``id`` is ours: handles need not be comparable."""

    id: str
    handle: Any
    begun_at: int


@dataclass(frozen=True, slots=True)
class TransactionState:
    """The transactions of one subtask at the end of an epoch.

    ``execution`` is the run of the job in which it was written, ``version`` counts the epochs.
    """

    execution: str
    version: int
    # Open, for the next epoch.
    current: Transaction | None
    # Pre-committed: waiting for a checkpoint to complete, and for one to come.
    pending: dict[int, tuple[Transaction, ...]]
    unassigned: tuple[Transaction, ...]
    # Those that the driver will send back to be committed.
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
        """In the order in which they were begun."""
        return [*in_order(self.pending), *self.unassigned]

    def behind(self, completed: int) -> list[Transaction]:
        """Those that no checkpoint up to ``completed`` holds."""
        later = {number: some for number, some in self.pending.items() if number > completed}
        still_open = () if self.current is None else (self.current,)
        return [*in_order(later), *self.unassigned, *still_open]

    def has(self, transaction: Transaction) -> bool:
        known = (*self.handed_over, *self.pre_committed())
        return any(transaction.id == other.id for other in known)


@dataclass(slots=True)
class OpenTransactions:
    """The same while an epoch runs."""

    current: Transaction | None = None
    has_records: bool = False
    pending: dict[int, tuple[Transaction, ...]] = field(default_factory=dict)
    unassigned: tuple[Transaction, ...] = ()
    handed_over: tuple[Transaction, ...] = ()
    # The one that the last epoch pre-committed, with the version of the state it is in.
    last: tuple[int, Transaction] | None = None


def in_order(pending: dict[int, tuple[Transaction, ...]]) -> list[Transaction]:
    return [transaction for number in sorted(pending) for transaction in pending[number]]
