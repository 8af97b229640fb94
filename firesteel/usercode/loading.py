"""Pickled operators that tasks load, and errors for operators that a task cannot load."""

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
    """A task cannot load a part of its operator."""

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
        text = f"Job '{self.job}' failed: a task could not load operator '{self.operator}'"
        if not self.traceback_text:
            return f"{text}, with {self.function}. {self.advice}"
        return (
            f"{self.traceback_text.rstrip()}\n\n{text}. "
            f"Unpickling {self.function} raised the error above. {self.advice}"
        )


@dataclass(frozen=True, slots=True)
class PackedPart:
    """The pickle of an operator's spec, or of a partitioning.

    ``function`` describes the user's function in it.
    """

    operator: str
    function: str
    payload: bytes = field(repr=False)
    # The user's modules that the payload names, and their files in the driver.
    origins: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def pack(value: object, operator: str, search_path: SearchPath) -> PackedPart:
        try:
            payload, modules = ValuePickler.dump_all(value)
        except Exception as error:
            # cloudpickle and the user's classes may raise any error.
            raise unpicklable_function(error, operator, value) from error
        return PackedPart(
            operator, described_function(value), payload, origins_of(modules, search_path)
        )

    def load(self, job: str) -> Any:
        try:
            value = pickle.loads(self.payload)
        except USER_ERRORS as error:
            # Loading imports the user's modules and runs their code, which may raise any error.
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
            f"The tasks do not have the module '{error.name}'. Send it with env.add_python_file() "
            "or env.set_python_requirements(), or install it on each machine."
        )
    if isinstance(error, AttributeError) and "Can't get attribute" in str(error):
        return (
            "Tasks import objects by name, except objects of the main program. The task found a "
            "different module or version under this name, or the program created the object after "
            "the import. Define the object at the top level of a module that the tasks have."
        )
    return (
        "Tasks import modules again and rebuild objects from their pickles. Check the code that "
        "runs when the module is imported, and __reduce__ and __setstate__ of the classes. Put "
        "code for the main program under `if __name__ == '__main__':`, and code for the task in "
        "open()."
    )


# The machine of the task has its own copies of these modules.
_NOT_THE_USERS = frozenset({"__main__", "firesteel"})


@dataclass(frozen=True, slots=True)
class MixedUpModule:
    name: str
    driver_file: str
    task_file: str

    def __str__(self) -> str:
        return (
            f"In the main program the module '{self.name}' is {self.driver_file}, but the task's "
            f"process has imported {self.task_file} under this name. A library or a different job "
            "may have imported it first. Give the module a unique name, or put it in a package."
        )


def origins_of(modules: Iterable[str], search_path: SearchPath) -> dict[str, str]:
    """Return the files of those modules that the driver finds before the standard library."""
    files = {}
    for name in sorted(modules):
        file = getattr(sys.modules.get(name), "__file__", None)
        if isinstance(file, str) and name.partition(".")[0] not in _NOT_THE_USERS:
            file = os.path.abspath(file)
            if search_path.holds_first(file):
                files[name] = file
    return files


def find_mixed_up(origins: Mapping[str, str]) -> MixedUpModule | None:
    """Return a module that this process has loaded from a different file than the driver.

    If the machine does not have the driver's file, a different file is expected.
    """
    for name, file in origins.items():
        module = sys.modules.get(name)
        if module is not None and os.path.isfile(file) and not _is_from(module, file):
            return MixedUpModule(name, file, getattr(module, "__file__", None) or repr(module))
    return None


def _is_from(module: ModuleType, file: str) -> bool:
    """Return True if the module was loaded from this file, or from a copy of it."""
    own = getattr(module, "__file__", None)
    if not isinstance(own, str):
        return False
    with contextlib.suppress(OSError):
        if os.path.samefile(own, file):
            return True
    # A copy that was sent may be in an archive, which only the loader can read.
    with contextlib.suppress(OSError, AttributeError), open(file, "rb") as stream:
        return bool(module.__spec__.loader.get_data(own) == stream.read())  # type: ignore[union-attr]
    return False
