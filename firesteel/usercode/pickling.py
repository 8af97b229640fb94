"""Pickle for records and state.

Classes of the user's ``__main__`` are pickled by value. Names that an earlier version of Firesteel
wrote into a checkpoint or savepoint are found in their current modules.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import fields
from typing import Any, TypeVar

from firesteel.usercode import value_pickler

# Maps module names of earlier versions, which are in checkpoints, to the present modules. A public
# name needs no entry, because its package still exports it.
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
    # This call is outside of the handler, so that its error does not show the first one as context.
    return value_pickler.dumps(value)


def dumps_watched(value: Any) -> tuple[bytes, bool]:
    """``dumps``, and True if the pickle may name classes or functions.

    False is certain: the value consists of numbers, texts, bytes and collections of them.
    """
    stream = io.BytesIO()
    pickler = _WatchingPickler(stream, protocol=5)
    try:
        pickler.dump(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        return value_pickler.dumps(value), True
    return stream.getvalue(), pickler.met_class


T = TypeVar("T")


def quickly_pickled(kind: type[T]) -> type[T]:
    """Let objects of a data class with slots be pickled as a call with the values of all fields.

    By default Python looks up the fields for every object, in both directions.
    """
    names = [one.name for one in fields(kind)]  # type: ignore[arg-type]  # it is a data class

    def reduce(self: Any) -> tuple[type[T], tuple[Any, ...]]:
        return kind, tuple([getattr(self, name) for name in names])

    kind.__reduce__ = reduce  # type: ignore[method-assign]  # for all objects of the class
    return kind


class _WatchingPickler(pickle.Pickler):
    """Notices objects of other types than Python's basic ones, which never reach the method."""

    met_class = False

    def reducer_override(self, value: Any) -> Any:
        self.met_class = True
        return NotImplemented


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

    It is slower than ``pickle.loads``, so it runs only after that has failed.
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
