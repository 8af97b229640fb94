"""TypeInformation, the base class of all types, and the conversion of batches.

``convert_batch`` returns the values that the next Python operator receives in PyFlink, after the
coder of the type has written and read them. It first checks a batch as a whole, in C code. It
checks single values only if the first check is not sufficient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

from firesteel.errors import TypeMismatchError
from firesteel.stability import public_evolving

__all__ = ["TypeInformation"]

NONE_TYPE = type(None)


class TypeInformation(ABC):
    """Describes the values of a stream: their check, conversion, text and columns.

    Programs create types with ``Types``.

    >>> numbers = env.from_collection([1, 2]).map(lambda number: number / 2, Types.DOUBLE())
    >>> numbers.get_type()
    Double
    """

    __slots__ = ()

    is_pickled = False
    """True if any Python object fits, so that ``convert_batch`` can be skipped."""

    _accepts_none = False
    """True if the coder of the type can represent None."""

    def need_conversion(self) -> bool:
        """Return True if ``to_internal_type`` changes values.

        >>> Types.LONG().need_conversion(), Types.SQL_DATE().need_conversion()
        (False, True)
        """
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """Convert a Python object to Flink's internal representation.

        Args:
            obj: The object, or None.

        >>> from datetime import date
        >>> Types.SQL_DATE().to_internal_type(date(1970, 1, 11))
        10
        """
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """Convert Flink's internal representation to a Python object.

        Args:
            obj: The internal object, or None.

        >>> Types.SQL_DATE().from_internal_type(10)
        datetime.date(1970, 1, 11)
        """
        return obj

    @property
    @public_evolving
    def contains_rows(self) -> bool:
        """True for rows and for types with rows inside. Not in PyFlink.

        >>> Types.LIST(Types.ROW([Types.INT()])).contains_rows
        True
        """
        return False

    @public_evolving
    def convert_batch(self, values: list[Any], nullable: bool = False) -> list[Any]:
        """Check and convert a list of values. Not in PyFlink.

        Args:
            values: The values.
            nullable: True allows None. A type that can represent None always allows it.

        Returns:
            The same list if no value changes, otherwise a new one.

        Raises:
            TypeMismatchError: A value does not fit. The error names the first one.

        >>> Types.INT().convert_batch([1, 2.7, True])
        [1, 2, 1]
        >>> Types.INT().convert_batch(["one"])
        Traceback (most recent call last):
        firesteel.errors.TypeMismatchError: ... expected int, got str.
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
    @public_evolving
    def to_java_string(self, value: Any) -> str:
        """Return the text of Java's ``toString()`` for a value. Not in PyFlink.

        Args:
            value: A value of this type.

        >>> Types.DOUBLE().to_java_string(1e10), Types.BOOLEAN().to_java_string(True)
        ('1.0E10', 'true')
        """

    @abstractmethod
    @public_evolving
    def to_arrow_type(self) -> pa.DataType:
        """Return the Arrow type of a DataFrame column of this type. Not in PyFlink.

        >>> print(Types.LIST(Types.INT()).to_arrow_type())
        list<item: int32>
        """

    @public_evolving
    def to_print_string(self, value: Any) -> str:
        """Return the text that ``DataStream.print()`` writes for a value. Not in PyFlink.

        Args:
            value: A value of this type.

        >>> Types.TUPLE([Types.STRING(), Types.LONG()]).to_print_string(("a", 1))
        '(a,1)'
        """
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
    """Return the types of the values.

    There is usually one type. Counting it takes a third of the time of building a set.
    """
    kinds = list(map(type, values))
    return set(kinds[:1]) if kinds.count(kinds[0]) == len(kinds) else set(kinds)


def nested_java_string(type_info: TypeInformation, value: Any) -> str:
    """Return the text of a value inside a different value. None becomes ``null``."""
    return "null" if value is None else type_info.to_java_string(value)
