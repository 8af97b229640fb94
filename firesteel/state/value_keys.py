"""Keys that Python cannot hash: lists, dictionaries, sets and arrays, compared by their content.

PyFlink serializes such keys, and equal bytes are one key. Here, subclasses with a hash take their
place. They equal the original key, and functions see them as a list, a dictionary or an array.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from firesteel.common.types import Row, field_names_of, new_row


class ListKey(list[Any]):
    """A list as a key. Its elements have a hash."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]  # a list has none
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return ListKey, (list(self),)


class DictKey(dict[Any, Any]):
    """A dictionary as a key. Its values have a hash. The order of its entries does not matter."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]  # a dictionary has none
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return DictKey, (dict(self),)


class ArrayKey(array):  # type: ignore[type-arg]  # of numbers of any kind
    """An array as a key."""

    def __hash__(self) -> int:  # type: ignore[override]  # an array has none
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrayKey, (self.typecode, list(self))

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        # An array's own method would be preferred to __reduce__.
        return self.__reduce__()

    def __repr__(self) -> str:
        return f"array({self.typecode!r}, {list(self)!r})"


def hashable_key(key: Any) -> Any:
    """Return the key, or a key that equals it and has a hash. Raises TypeError if there is none.

    >>> hash(hashable_key([1, {"a": [2]}])) == hash(hashable_key([1, {"a": [2]}]))
    True
    """
    try:
        hash(key)
    except TypeError:
        for kind, convert in _CONVERSIONS.items():
            if isinstance(key, kind):
                return convert(key)
        raise
    return key


def _named_or_plain(key: tuple[Any, ...]) -> Any:
    values = map(hashable_key, key)
    # A named tuple takes its fields one by one.
    return type(key)(*values) if hasattr(key, "_fields") else tuple(values)


_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    list: lambda key: ListKey(map(hashable_key, key)),
    dict: lambda key: DictKey({name: hashable_key(value) for name, value in key.items()}),
    tuple: _named_or_plain,
    Row: lambda key: new_row(list(map(hashable_key, key)), field_names_of(key), key.get_row_kind()),
    # The immutable kinds equal the mutable ones.
    set: frozenset,
    bytearray: bytes,
    array: lambda key: ArrayKey(key.typecode, key),
}
