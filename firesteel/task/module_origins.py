"""Which file a module of the user's comes from: a task must not run another of the same name."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType

from firesteel.task.search_path import SearchPath

# What runs the task comes from wherever the task's machine has it.
_NOT_THE_USERS = frozenset({"__main__", "firesteel"})


@dataclass(frozen=True, slots=True)
class MixedUpModule:
    name: str
    driver_file: str
    task_file: str

    def __str__(self) -> str:
        return (
            f"In the main program the module '{self.name}' is {self.driver_file}, but the task's "
            f"process has {self.task_file} under this name; a library, or another job of the "
            "application, may have imported it there first. Give the module a name of its own, or "
            "put it into a package."
        )


def origins_of(modules: Iterable[str], search_path: SearchPath) -> dict[str, str]:
    """The files of those modules that the driver has found before the standard library."""
    files = {}
    for name in sorted(modules):
        file = getattr(sys.modules.get(name), "__file__", None)
        if isinstance(file, str) and name.partition(".")[0] not in _NOT_THE_USERS:
            file = os.path.abspath(file)
            if search_path.holds_first(file):
                files[name] = file
    return files


def find_mixed_up(origins: Mapping[str, str]) -> MixedUpModule | None:
    """A module that this process has from another file than the driver.

    On a machine that does not have the driver's file, it can only come from elsewhere.
    """
    for name, file in origins.items():
        module = sys.modules.get(name)
        if module is not None and os.path.isfile(file) and not _is_from(module, file):
            return MixedUpModule(name, file, getattr(module, "__file__", None) or repr(module))
    return None


def _is_from(module: ModuleType, file: str) -> bool:
    """Whether the module has been loaded from this file, or from a copy of it."""
    own = getattr(module, "__file__", None)
    if not isinstance(own, str):
        return False
    with contextlib.suppress(OSError):
        if os.path.samefile(own, file):
            return True
    # A copy that was shipped is perhaps in an archive; only the loader can look into those.
    with contextlib.suppress(OSError, AttributeError), open(file, "rb") as stream:
        return bool(module.__spec__.loader.get_data(own) == stream.read())  # type: ignore[union-attr]
    return False
