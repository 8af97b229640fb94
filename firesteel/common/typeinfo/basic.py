"""Types of numbers, strings, booleans, and of arbitrary Python objects."""

from __future__ import annotations

import struct
from array import array
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, SupportsInt

import pyarrow as pa

from firesteel.common.typeinfo.base import TypeInformation
from firesteel.common.typeinfo.java_text import java_double, java_float
from firesteel.errors import NotYetSupportedError
from firesteel.stability import public_evolving

__all__ = ["BasicType", "BasicTypeInfo", "PickledBytesTypeInfo"]


class BasicType(Enum):
    """The basic types, with the names of their Java classes.

    >>> BasicType.LONG.value
    'Long'
    """

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


class BasicTypeInfo(TypeInformation):
    """A type without inner structure, such as ``Types.LONG()``.

    >>> type_info = Types.LONG()
    >>> isinstance(type_info, BasicTypeInfo), type_info.basic_type
    (True, <BasicType.LONG: 'Long'>)
    """

    __slots__ = ("_basic_type",)

    def __init__(self, basic_type: BasicType) -> None:
        self._basic_type = basic_type

    @property
    @public_evolving
    def basic_type(self) -> BasicType:
        """The member of BasicType. Not in PyFlink."""
        return self._basic_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BasicTypeInfo) and self._basic_type is other._basic_type

    def __hash__(self) -> int:
        return hash(self._basic_type)

    def __repr__(self) -> str:
        return self._basic_type.value

    def to_java_string(self, value: Any) -> str:
        return str(value)

    def to_arrow_type(self) -> pa.DataType:
        return _ARROW_TYPES[self._basic_type]()


_ARROW_TYPES = {
    BasicType.STRING: pa.string,
    BasicType.CHAR: pa.string,
    BasicType.BOOLEAN: pa.bool_,
    BasicType.BYTE: pa.int8,
    BasicType.SHORT: pa.int16,
    BasicType.INT: pa.int32,
    BasicType.LONG: pa.int64,
    BasicType.FLOAT: pa.float32,
    BasicType.DOUBLE: pa.float64,
    # Spark's decimals have at most 38 digits. Flink's Table API uses 18 decimal places for BIG_DEC.
    BasicType.BIG_INT: lambda: pa.decimal128(38, 0),
    BasicType.BIG_DEC: lambda: pa.decimal128(38, 18),
    BasicType.INSTANT: lambda: pa.timestamp("us", tz="UTC"),
}


class StringTypeInfo(BasicTypeInfo):
    """STRING and CHAR."""

    __slots__ = ()

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if kinds == {str}:
            return values
        return [self._one(value) for value in values]

    def _one(self, value: Any) -> str:
        if not isinstance(value, str):
            raise self._unexpected(value, "str")
        return str.__str__(value)  # a subclass becomes a plain str


class BooleanTypeInfo(BasicTypeInfo):
    """BOOLEAN. As in PyFlink, a number from 0 to 255 becomes its truth value."""

    __slots__ = ()

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if kinds == {bool}:
            return values
        return [self._one(value) for value in values]

    def _one(self, value: Any) -> bool:
        number = _as_int(value)
        if number is None:
            raise self._unexpected(value, "bool")
        if not 0 <= number <= 255:
            raise self._mismatch(value, "expected bool, or a number from 0 to 255.")
        return number != 0

    def to_java_string(self, value: Any) -> str:
        return "true" if value else "false"


class IntegerTypeInfo(BasicTypeInfo):
    """BYTE, SHORT, INT and LONG, with a check of their range.

    As in PyFlink's coders, bools become 0 or 1, and floats and decimals lose their fraction.
    """

    __slots__ = ("_bits", "_code")

    def __init__(self, basic_type: BasicType) -> None:
        super().__init__(basic_type)
        self._code, self._bits = _INTEGERS[basic_type]

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if kinds != {int}:
            return self._convert([self._one(value) for value in values], {int})
        try:
            # This is the cheapest range check of many values: one pass in C code.
            struct.pack(f"{len(values)}{self._code}", *values)
        except struct.error:
            for value in values:
                self._one(value)
        return values

    def _one(self, value: Any) -> int:
        number = _as_int(value)
        if number is None:
            raise self._unexpected(value, "int")
        limit = 1 << (self._bits - 1)
        if not -limit <= number < limit:
            raise self._mismatch(value, f"expected an int from {-limit} to {limit - 1}.")
        return number


_INTEGERS = {
    BasicType.BYTE: ("b", 8),
    BasicType.SHORT: ("h", 16),
    BasicType.INT: ("i", 32),
    BasicType.LONG: ("q", 64),
}


class BigIntTypeInfo(BasicTypeInfo):
    """BIG_INT, integers of any size. PyFlink stops at 64 bits; Java's BigInteger does not."""

    __slots__ = ()

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if kinds == {int}:
            return values
        return [self._one(value) for value in values]

    def _one(self, value: Any) -> int:
        number = _as_int(value)
        if number is None:
            raise self._unexpected(value, "int")
        return number


class FloatingTypeInfo(BasicTypeInfo):
    """FLOAT and DOUBLE. Any object with ``__float__`` fits. FLOAT rounds to 32 bits."""

    __slots__ = ("_code",)

    def __init__(self, basic_type: BasicType) -> None:
        super().__init__(basic_type)
        self._code = "f" if basic_type is BasicType.FLOAT else "d"

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        only_floats = kinds == {float}
        if only_floats and self._code == "d":
            return values
        try:
            converted = array(self._code, values).tolist()
        except (TypeError, ValueError, OverflowError):
            for value in values:
                self._check(value)
            raise
        return values if only_floats and converted == values else converted

    def _check(self, value: Any) -> None:
        try:
            array("d", (value,))
        except TypeError:
            raise self._unexpected(value, "float") from None
        except (ValueError, OverflowError) as error:
            raise self._mismatch(value, f"{error}.") from None

    def to_java_string(self, value: Any) -> str:
        return java_float(value) if self._code == "f" else java_double(value)


class BigDecTypeInfo(BasicTypeInfo):
    """BIG_DEC, decimals of any precision. Numbers and numeric text convert through their text."""

    __slots__ = ()

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if kinds != {Decimal}:
            return [self._one(value) for value in values]
        if all(map(Decimal.is_finite, values)):
            return values
        return [self._one(value) for value in values]

    def _one(self, value: Any) -> Decimal:
        try:
            number = value if type(value) is Decimal else Decimal(str(value))
        except InvalidOperation:
            raise self._unexpected(value, "Decimal") from None
        if not number.is_finite():
            raise self._mismatch(value, "Java's BigDecimal has no NaN and no infinity.")
        return number


class PickledBytesTypeInfo(TypeInformation):
    """Any Python object, without a check or a conversion. It is the type of untyped streams.

    >>> env.from_collection([object()]).get_type() == Types.PICKLED_BYTE_ARRAY()
    True
    """

    __slots__ = ()

    is_pickled = True

    def convert_batch(self, values: list[Any], nullable: bool = False) -> list[Any]:
        return values

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        return values

    def to_java_string(self, value: Any) -> str:
        return str(value)

    def to_arrow_type(self) -> pa.DataType:
        raise NotYetSupportedError(
            "A DataFrame column of type PICKLED_BYTE_ARRAY",
            "Spark columns need a type. Give the last operator an output_type, for example "
            "output_type=Types.ROW_NAMED(['word', 'count'], [Types.STRING(), Types.LONG()]).",
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PickledBytesTypeInfo)

    def __hash__(self) -> int:
        return hash(PickledBytesTypeInfo)

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


def _as_int(value: Any) -> int | None:
    """Return the plain int that PyFlink's coders see, or None if the value is not a number."""
    if type(value) is int:
        return value
    # str and bytes have no __int__, although int() would parse them.
    if isinstance(value, str) or not isinstance(value, SupportsInt):
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):  # for example NaN
        return None
