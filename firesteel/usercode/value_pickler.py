"""Pickling by value of objects that tasks cannot import: cloudpickle, extended for functools.

cloudpickle pickles functions and classes of ``__main__`` and of local scopes by value. It does not
do so for the wrappers of functools around such functions. It would pickle the name of a wrapper,
which fails in the task, or fail on the wrapper's locks and weak references.
"""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle
from cloudpickle.cloudpickle import list_registry_pickle_by_value

_CacheWrapper = type(functools.lru_cache(len))
# All functions that singledispatch creates share their code.
_SINGLE_DISPATCH = functools.singledispatch(len).__code__  # type: ignore[attr-defined]  # a function
_CACHE_ATTRIBUTES = frozenset({"__wrapped__", "cache_parameters"})


def dumps(value: object) -> bytes:
    return ValuePickler.dump_all(value)[0]


class ValuePickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """Pickles by value, and records the modules that loading the pickle will import."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.modules: set[str] = set()

    @staticmethod
    def dump_all(value: object) -> tuple[bytes, set[str]]:
        """Return the pickle, and the names of the modules it refers to."""
        with io.BytesIO() as file:
            pickler = ValuePickler(file)
            pickler.dump(value)
            return file.getvalue(), pickler.modules

    def reducer_override(self, obj: Any) -> Any:
        reduced = self._reduce(obj)
        if reduced is NotImplemented:
            if isinstance(obj, type | FunctionType | _CacheWrapper):
                self.modules.add(str(obj.__module__))
            elif isinstance(obj, ModuleType):
                self.modules.add(obj.__name__)
        return reduced

    def _reduce(self, obj: Any) -> Any:
        """Reduce wrappers of functools. NotImplemented leaves an object to cloudpickle and pickle."""
        kind = type(obj)
        if kind is _CacheWrapper:
            return NotImplemented if _is_importable(obj) else _reduce_cache(obj)
        if kind is functools.cached_property:
            return functools.cached_property, (obj.func,), {"attrname": obj.attrname}
        if kind is functools.singledispatchmethod:
            # Since Python 3.13 a singledispatchmethod also has a cache of weak references.
            return functools.singledispatchmethod, (obj.func,), {"dispatcher": obj.dispatcher}
        if kind is FunctionType and obj.__code__ is _SINGLE_DISPATCH and not _is_importable(obj):
            return _reduce_single_dispatch(obj)
        return super().reducer_override(obj)


def _is_importable(function: Any) -> bool:
    """Return True if a task finds a function by module and name. The rule is cloudpickle's."""
    name = function.__module__
    module = sys.modules.get(name)
    if module is None or name == "__main__" or _is_registered_by_value(name):
        return False
    found: Any = module
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is function


def _is_registered_by_value(module: str) -> bool:
    registered = list_registry_pickle_by_value()
    return any(module == name or module.startswith(f"{name}.") for name in registered)


# A function may refer to its wrapper, for example to call itself. The other attributes of the
# wrapper are therefore set after it exists.


def _reduce_cache(wrapper: Any) -> tuple[Any, ...]:
    attributes = {k: v for k, v in vars(wrapper).items() if k not in _CACHE_ATTRIBUTES}
    arguments = (wrapper.__wrapped__, wrapper.cache_parameters())
    return _make_cache, arguments, attributes, None, None, _set_attributes


def _make_cache(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def _set_attributes(wrapper: Any, attributes: Mapping[str, Any]) -> None:
    vars(wrapper).update(attributes)


def _reduce_single_dispatch(wrapper: Any) -> tuple[Any, ...]:
    functions = dict(wrapper.registry)
    arguments = (functions.pop(object),)
    return functools.singledispatch, arguments, functions, None, None, _register_all


def _register_all(wrapper: Any, functions: Mapping[type, Callable[..., Any]]) -> None:
    for kind, function in functions.items():
        wrapper.register(kind, function)
