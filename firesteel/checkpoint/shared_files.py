"""Who still needs which state file: reference counts, as segments belong to many checkpoints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

__all__ = ["SharedFiles"]


class SharedFiles:
    """Holders (the running job, pending and completed checkpoints) hold sets of locations.

    A file that nobody holds any more is returned once, by the call that let it go, and is to be
    deleted.
    """

    def __init__(self) -> None:
        self._held: dict[Hashable, frozenset[str]] = {}
        self._counts: Counter[str] = Counter()

    def hold(self, holder: Hashable, files: Iterable[str]) -> frozenset[str]:
        """From now on ``holder`` needs exactly these files. Returns those to be deleted."""
        new = frozenset(files)
        old = self._held.get(holder, frozenset())
        self._held[holder] = new
        self._counts.update(new - old)
        return self._drop(old - new)

    def release(self, holder: Hashable) -> frozenset[str]:
        """``holder`` is gone. Returns the files to be deleted."""
        return self._drop(self._held.pop(holder, frozenset()))

    def _drop(self, files: frozenset[str]) -> frozenset[str]:
        unheld = set()
        for file in files:
            self._counts[file] -= 1
            if self._counts[file] == 0:
                del self._counts[file]
                unheld.add(file)
        return frozenset(unheld)

    def is_held(self, file: str) -> bool:
        return file in self._counts

    def orphans(self, existing: Iterable[str]) -> frozenset[str]:
        """Those of the existing files that nobody holds: attempts that were not used wrote them.

        Ask only while no task is running: what a task has written becomes known with its ack.
        """
        return frozenset(file for file in existing if file not in self._counts)
