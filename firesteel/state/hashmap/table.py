"""One named keyed state of one subtask: a confirmed base and the changes of the running epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Self


class Missing:
    """Marks a key without a value; in an overlay, a key that was deleted. One object per process."""

    _instance: Self | None = None

    def __new__(cls) -> Self:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __reduce__(self) -> tuple[type[Missing], tuple[()]]:
        return (Missing, ())

    def __repr__(self) -> str:
        return "<missing>"


MISSING: Final = Missing()


class StateTable:
    """``base`` is version e-1 and does not change during epoch e; ``overlay`` is what e changed.

    Hot loops read both dictionaries directly: first ``overlay``, then ``base``.
    """

    __slots__ = ("_has_deletions", "base", "overlay")

    def __init__(self) -> None:
        self.base: dict[Any, Any] = {}
        self.overlay: dict[Any, Any] = {}
        self._has_deletions = False

    def get(self, key: Any) -> Any:
        value = self.overlay.get(key, MISSING)
        if value is MISSING and key not in self.overlay:
            value = self.base.get(key, MISSING)
        return value

    def put(self, key: Any, value: Any) -> None:
        self.overlay[key] = value

    def remove(self, key: Any) -> None:
        self.overlay[key] = MISSING
        self._has_deletions = True

    def confirm(self) -> None:
        """The epoch is confirmed: its changes become the base.

        ``overlay`` stays the same dictionary, because loops hold on to it.
        """
        self.base.update(self.overlay)
        self.overlay.clear()
        if self._has_deletions:
            drop_missing(self.base)
            self._has_deletions = False

    def clear(self) -> None:
        self.base.clear()
        self.overlay.clear()
        self._has_deletions = False

    def items(self) -> Iterator[tuple[Any, Any]]:
        """All present entries, the overlay's first."""
        for key, value in self.overlay.items():
            if value is not MISSING:
                yield key, value
        for key, value in self.base.items():
            if key not in self.overlay:
                yield key, value

    def __len__(self) -> int:
        return sum(1 for _ in self.items())


def drop_missing(entries: dict[Any, Any]) -> None:
    for key in [key for key, value in entries.items() if value is MISSING]:
        del entries[key]
