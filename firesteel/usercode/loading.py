"""An operator on its way into a task: its pickle, and what to say if it cannot be loaded there."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from firesteel.errors import FiresteelError
from firesteel.usercode.failures import USER_ERRORS
from firesteel.usercode.search_path import SearchPath
from firesteel.usercode.unpicklable import described_function, unpicklable_function
from firesteel.usercode.value_pickler import ValuePickler


class UnloadableFunctionError(FiresteelError, RuntimeError):
    """What belongs to an operator was sent to its task, but could not be loaded there."""

    def __init__(
        self,
        *,
        job: str,
        operator: str,
        function: str,
        traceback_text: str,
        cause: str,
        advice: str,
    ) -> None:
        super().__init__(operator)
        self.job = job
        self.operator = operator
        self.function = function
        self.traceback_text = traceback_text
        self.cause = cause
        self.advice = advice

    def __str__(self) -> str:
        text = (
            f"Job '{self.job}' failed: operator '{self.operator}' could not be loaded in its task"
        )
        if not self.traceback_text:
            return f"{text}, with {self.function}. {self.advice}"
        return (
            f"{self.traceback_text.rstrip()}\n\n{text}. "
            f"Unpickling {self.function} raised the error above. {self.advice}"
        )


@dataclass(frozen=True, slots=True)
class PackedPart:
    """The spec of an operator, or a partitioning; ``function`` says what of the user's is in it."""

    operator: str
    function: str
    payload: bytes = field(repr=False)
    # The user's modules that the payload names, and the driver's files of them.
    origins: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def pack(value: object, operator: str, search_path: SearchPath) -> PackedPart:
        try:
            payload, modules = ValuePickler.dump_all(value)
        except Exception as error:
            # cloudpickle and the user's classes may raise anything.
            raise unpicklable_function(error, operator, value) from error
        return PackedPart(
            operator, described_function(value), payload, origins_of(modules, search_path)
        )

    def load(self, job: str) -> Any:
        try:
            value = pickle.loads(self.payload)
        except USER_ERRORS as error:
            # It imports the user's modules, and calls what their classes say: anything may come.
            raise self._error(job, error) from error
        if find_mixed_up(self.origins) is not None:
            raise self._error(job, None)
        return value

    def _error(self, job: str, error: BaseException | None) -> UnloadableFunctionError:
        text = ""
        if error is not None:
            below_ours = error.__traceback__ and error.__traceback__.tb_next
            text = "".join(traceback.format_exception(type(error), error, below_ours))
        mixed_up = find_mixed_up(self.origins)
        return UnloadableFunctionError(
            job=job,
            operator=self.operator,
            function=self.function,
            traceback_text=text,
            cause=type(error).__name__ if error is not None else "",
            advice=_advice(error) if mixed_up is None else str(mixed_up),
        )


def _advice(error: BaseException | None) -> str:
    if isinstance(error, ModuleNotFoundError):
        return (
            f"The module '{error.name}' is not there where the tasks run: bring it along with "
            "env.add_python_file() or env.set_python_requirements(), or install it on every machine."
        )
    if isinstance(error, AttributeError) and "Can't get attribute" in str(error):
        return (
            "Tasks import by name what is not of the main program. Under this name they find "
            "another module, or another version of it, or the program made the object only after "
            "the import: define it at the top level of a module that the tasks have, too."
        )
    return (
        "Modules are imported again in the tasks, and objects rebuilt from their pickles: look at "
        "what the module does when it is imported, and at __reduce__ and __setstate__ of the "
        "classes. What only works in the main program belongs under `if __name__ == '__main__':`, "
        "what only works in the task into open()."
    )


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
