"""Pickle for records and state.

Classes of the user's ``__main__`` are pickled by value. Names that an earlier version of Firesteel
wrote into a checkpoint or savepoint are found where they are today.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from firesteel.usercode import value_pickler

# Modules of earlier versions whose names are in checkpoints, and the modules that have these names
# today. A public name needs no entry: its package passes it on.
_MOVED_MODULES = {
    "firesteel.task.transactions": "firesteel.task.operators.two_phase_commit_sink",
    "firesteel.value_pickler": "firesteel.usercode.value_pickler",
}


def dumps(value: Any) -> bytes:
    """Pickle a value. Plain pickle is fast, but cannot name objects of ``__main__``."""
    try:
        return pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    # Outside of the handler, so that a second error hides the first one.
    return value_pickler.dumps(value)


def loads(payload: bytes | memoryview) -> Any:
    """Unpickle the result of ``dumps`` of this version or an earlier one."""
    try:
        return pickle.loads(payload)
    except (ModuleNotFoundError, AttributeError) as error:
        if not _lacks_name_of_ours(error):
            raise
    return _MovedNamesUnpickler(io.BytesIO(payload)).load()


class _MovedNamesUnpickler(pickle.Unpickler):
    """Finds names of earlier versions.

    It is slower than ``pickle.loads``, so it runs only if that has failed.
    """

    def find_class(self, module: str, name: str) -> Any:
        try:
            return super().find_class(module, name)
        except (ModuleNotFoundError, AttributeError) as error:
            if not _lacks_name_of_ours(error):
                raise
            package = module.rpartition(".")[0]
            return super().find_class(_MOVED_MODULES.get(module, package), name)


def _lacks_name_of_ours(error: ModuleNotFoundError | AttributeError) -> bool:
    """Return True if a pickle names a module or attribute that Firesteel does not have there."""
    if isinstance(error, ModuleNotFoundError):
        return str(error.name).startswith("firesteel.")
    return "on <module 'firesteel." in str(error)
