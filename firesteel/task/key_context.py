"""The current key, whose state a function sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from firesteel.errors import InvalidProgramError


class NoKey:
    """Stands for the key while no record is processed. Its hash raises an error."""

    def __hash__(self) -> int:
        raise InvalidProgramError(
            "keyed state belongs to the key of a record, and no record is being processed: use it "
            "in process_element() or on_timer(), not in open() or close(); in "
            "process_broadcast_element(), use ctx.apply_to_keyed_state()"
        )


class KeyContext:
    """Holds the current key. Operators set it before they call the user's function."""

    __slots__ = ("after_batch", "key")

    def __init__(self) -> None:
        self.key: Any = NoKey()
        # Called with the number of records of each batch, to clean up expired state.
        self.after_batch: list[Callable[[int], None]] = []

    def forget(self) -> None:
        """Clear the current key."""
        self.key = NoKey()

    def following(self, keys: Iterable[Any]) -> Iterator[Any]:
        """Yield the keys, and make each one current."""
        for key in keys:
            self.key = key
            yield key

    def feed(self, values: Iterator[Any], keys: Iterable[Any]) -> Iterator[Any]:
        """Yield the values, and make the key of each one current."""
        for value, self.key in zip(values, keys, strict=False):
            yield value

    def batch_ended(self, records: int) -> None:
        for clean_up in self.after_batch:
            clean_up(records)


class NamespacedKey:
    """The current key within a namespace, for tables whose keys are (key, namespace)."""

    __slots__ = ("_context", "namespace")

    def __init__(self, context: KeyContext, namespace: Any = None) -> None:
        self._context = context
        self.namespace = namespace

    @property
    def key(self) -> tuple[Any, Any]:
        return self._context.key, self.namespace


CurrentKey = KeyContext | NamespacedKey
