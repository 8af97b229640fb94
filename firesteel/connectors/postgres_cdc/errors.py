"""Errors of the change data capture of PostgreSQL."""

from __future__ import annotations

from firesteel.errors import FiresteelError

__all__ = ["ChangeStreamError", "ReplicationSlotMovedError"]


class ChangeStreamError(FiresteelError, RuntimeError):
    """The changes of a table cannot be read."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(f"The changes of table {table!r} cannot be read: {reason}.")
        self.table = table
        self.reason = reason


class ReplicationSlotMovedError(FiresteelError, RuntimeError):
    """The server no longer has changes that the job has to read."""

    def __init__(self, slot: str, wanted: str, confirmed: str | None) -> None:
        state = (
            "does not exist"
            if confirmed is None
            else f"has moved on to {confirmed}, beyond the position {wanted} of the checkpoint"
        )
        super().__init__(
            f"The replication slot {slot!r} {state}. The changes in between would be lost. Restore "
            "the newest checkpoint, or start the job without one, which reads the table again."
        )
        self.slot = slot
        self.wanted = wanted
        self.confirmed = confirmed
