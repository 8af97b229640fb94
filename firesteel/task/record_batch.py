"""A batch of records: the unit in which operators take their input and give their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.task.codegen.key_loops import KeySelection


class RecordBatch:
    """Records as Python objects. A batch may have several consumers, and none changes its lists.

    values: the records. A source may give a range to consumers that iterate once.
    timestamps: the event time of each record in milliseconds, or None if the records have none.
    sent_keys: the key of each record, or None if the keys did not travel with the records.
    selection: computes the keys of a keyed edge whose records contain them.
    """

    __slots__ = ("selection", "sent_keys", "timestamps", "values")

    def __init__(
        self,
        values: list[Any],
        timestamps: list[int] | None = None,
        sent_keys: list[Any] | None = None,
        selection: KeySelection | None = None,
    ) -> None:
        self.values = values
        self.timestamps = timestamps
        self.sent_keys = sent_keys
        self.selection = selection

    @property
    def keys(self) -> list[Any] | None:
        """The keys, computed on the first call if they did not travel; None without a key."""
        if self.sent_keys is None and self.selection is not None:
            self.sent_keys = self.selection.keys_of(self.values)
        return self.sent_keys

    def __len__(self) -> int:
        return len(self.values)

    def part(self, start: int, stop: int) -> RecordBatch:
        """The records from ``start`` up to but not including ``stop``."""
        return RecordBatch(
            self.values[start:stop],
            self.timestamps and self.timestamps[start:stop],
            self.sent_keys and self.sent_keys[start:stop],
            self.selection,
        )


Emit = Callable[[RecordBatch], None]
"""Takes a batch: an operator, a generated loop, a record writer, or a gate."""


class SentRecords:
    """The number of records that left one output of an operator in an epoch.

    count: the number.
    is_known: False if a generated loop would have to count records one by one.
    """

    __slots__ = ("count", "is_known")

    def __init__(self) -> None:
        self.count = 0
        self.is_known = True

    def counted(self, emit: Emit) -> Emit:
        """Count the batches on their way to ``emit``."""

        def emit_counted(batch: RecordBatch) -> None:
            self.count += len(batch)
            emit(batch)

        return emit_counted
