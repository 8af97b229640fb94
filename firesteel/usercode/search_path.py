"""Search path of modules, with which tasks find the same modules as the driver."""

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
    """Directories of modules before and after the standard library.

    ``first`` comes before the standard library, like the directory of a script. The standard
    library is not included, because each interpreter has its own. A directory that a machine does
    not have is harmless.
    """

    first: tuple[str, ...]
    last: tuple[str, ...]

    @staticmethod
    def of_driver() -> SearchPath:
        return _split(_entries())

    @staticmethod
    def of_task() -> SearchPath:
        """Return the path of a process that ``python -m`` has started.

        The program did not choose the working directory of this process, so it comes last.
        """
        own = _split(_entries())
        directory = os.getcwd()
        if directory not in own.first:
            return own
        first = tuple(entry for entry in own.first if entry != directory)
        return SearchPath(first, (*own.last, directory))

    def then(self, other: SearchPath) -> SearchPath:
        """Return both paths combined. ``first`` of both stays before the standard library.

        In ``last``, the entries of the other path come first, because they have the packages of its
        interpreter.
        """
        return SearchPath(_unique((*self.first, *other.first)), _unique((*other.last, *self.last)))

    def holds_first(self, file: str) -> bool:
        """Return True if a module's file is in a directory or archive of ``first``."""
        holders = [e for e in (*self.first, *self.last, *_entries()) if file.startswith(e + os.sep)]
        # Packages may be below the program's directory, so the longest matching entry decides.
        return bool(holders) and max(holders, key=len) in self.first

    def adopt(self) -> None:
        """Make this process search these entries first, and then its previous entries.

        In a shared process the latest program comes first.
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
    """Return ``sys.path`` with absolute paths. An empty entry is the current working directory."""
    return _unique(os.path.abspath(entry) for entry in sys.path)


def _split(entries: tuple[str, ...]) -> SearchPath:
    places = [place for place, entry in enumerate(entries) if _is_library(entry)]
    # A frozen interpreter has no library entry, so all entries come last.
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
