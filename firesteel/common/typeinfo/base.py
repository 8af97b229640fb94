"""The base of all type informations, and the frame of batch conversion.

``convert_batch`` gives what the next Python operator sees in PyFlink after a value went through
the coder of its type. A batch is first checked as a whole, at C speed; single values are looked
at only when that check does not settle it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

from firesteel.errors import TypeMismatchError

__all__ = ["TypeInformation"]

NONE_TYPE = type(None)


class TypeInformation(ABC):
    """Describes the values of a stream: how they are checked, converted, printed and stored."""

    __slots__ = ()

    is_pickled = False
    """True when any Python object fits, so that ``convert_batch`` can be skipped."""

    _accepts_none = False
    """True when the type's coder has a mark of its own for None."""

    def need_conversion(self) -> bool:
        """Whether ``to_internal_type`` changes anything."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """Convert a Python object to Flink's internal representation."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """Convert Flink's internal representation to a Python object."""
        return obj

    def convert_batch(self, values: list[Any], nullable: bool = False) -> list[Any]:
        """Check and convert a list of values; the same list comes back if nothing changes.

        None is an error unless ``nullable``, except for types that carry None themselves.
        Raises TypeMismatchError for the first value that does not fit.
        """
        if not values:
            return values
        kinds = _kinds_of(values)
        if NONE_TYPE not in kinds:
            return self._convert(values, kinds)
        if nullable or self._accepts_none:
            return self._convert_around_none(values)
        return self._convert(values, kinds)

    @abstractmethod
    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        """Convert ``values``, whose Python types are ``kinds``."""

    @abstractmethod
    def to_java_string(self, value: Any) -> str:
        """Return what Java's toString() gives for this value."""

    @abstractmethod
    def to_arrow_type(self) -> pa.DataType:
        """Return the Arrow type of a DataFrame column of this type."""

    def to_print_string(self, value: Any) -> str:
        """Return what DataStream.print() writes for this value."""
        return self.to_java_string(value)

    def _convert_around_none(self, values: list[Any]) -> list[Any]:
        present = [value for value in values if value is not None]
        converted = self.convert_batch(present)
        if converted is present:
            return values
        rest = iter(converted)
        return [None if value is None else next(rest) for value in values]

    def _mismatch(self, value: object, reason: str) -> TypeMismatchError:
        return TypeMismatchError(value, self, reason)

    def _unexpected(self, value: object, expected: str) -> TypeMismatchError:
        if value is None:
            return self._mismatch(value, f"None is not allowed here, expected {expected}.")
        return self._mismatch(value, f"expected {expected}, got {type(value).__qualname__}.")


def _kinds_of(values: list[Any]) -> set[type]:
    """The types of the values. There is mostly one, and counting it takes a third of a set's time."""
    kinds = list(map(type, values))
    return set(kinds[:1]) if kinds.count(kinds[0]) == len(kinds) else set(kinds)


def nested_java_string(type_info: TypeInformation, value: Any) -> str:
    """Return the text of a value inside another one, where null may stand."""
    return "null" if value is None else type_info.to_java_string(value)
