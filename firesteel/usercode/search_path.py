"""Where modules are looked for: tasks find the same ones as the driver, in the same order."""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass

_STANDARD_LIBRARY = frozenset(
    {
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        os.path.dirname(os.__file__),
    }
)
_ZIPPED_LIBRARY = f"python{sys.version_info.major}{sys.version_info.minor}.zip"


@dataclass(frozen=True, slots=True)
class SearchPath:
    """``first``: what is found before the standard library, as the script's own directory is.

    The standard library is not part of it: every interpreter has its own. Directories that another
    machine does not have do no harm there.
    """

    first: tuple[str, ...]
    last: tuple[str, ...]

    @staticmethod
    def of_driver() -> SearchPath:
        return _split(_entries())

    @staticmethod
    def of_task() -> SearchPath:
        """Of a process that ``python -m`` has started: its working directory is the system's choice."""
        own = _split(_entries())
        directory = os.getcwd()
        if directory not in own.first:
            return own
        first = tuple(entry for entry in own.first if entry != directory)
        return SearchPath(first, (*own.last, directory))

    def then(self, other: SearchPath) -> SearchPath:
        """What comes first for either stays before the standard library.

        Of what comes after it, the other's goes first: those are packages, made for its interpreter.
        """
        return SearchPath(_unique((*self.first, *other.first)), _unique((*other.last, *self.last)))

    def holds_first(self, file: str) -> bool:
        """Whether a module's file is in one of the directories (or archives) that come first."""
        holders = [e for e in (*self.first, *self.last, *_entries()) if file.startswith(e + os.sep)]
        # Packages may be in a directory below the program's own.
        return bool(holders) and max(holders, key=len) in self.first

    def adopt(self) -> None:
        """Search here in this order, and then where this process has looked before.

        The latest program of a shared process comes first.
        """
        before = _entries()
        library = tuple(entry for entry in before if _is_library(entry))
        merged = self.then(SearchPath.of_task())
        first = [entry for entry in merged.first if entry not in library]
        rest = [entry for entry in merged.last if entry not in first and entry not in library]
        wanted = [*first, *library, *rest]
        if wanted != list(before):
            sys.path[:] = wanted
            importlib.invalidate_caches()


def _entries() -> tuple[str, ...]:
    """``""`` stands for the working directory, whatever that is at the time."""
    return _unique(os.path.abspath(entry) for entry in sys.path)


def _split(entries: tuple[str, ...]) -> SearchPath:
    places = [place for place, entry in enumerate(entries) if _is_library(entry)]
    # Without one (a frozen interpreter) nothing can be told.
    border = places[0] if places else 0
    return SearchPath(
        entries[:border], tuple(entry for entry in entries[border:] if not _is_library(entry))
    )


def _is_library(entry: str) -> bool:
    return (
        entry in _STANDARD_LIBRARY
        or os.path.basename(entry) == _ZIPPED_LIBRARY
        or (
            os.path.basename(entry) == "lib-dynload" and os.path.dirname(entry) in _STANDARD_LIBRARY
        )
    )


def _unique(entries: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entries))
