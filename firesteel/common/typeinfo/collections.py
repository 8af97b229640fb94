"""Types of lists, arrays and maps."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from firesteel.common.typeinfo.base import TypeInformation, nested_java_string
from firesteel.common.typeinfo.basic import BasicType, BasicTypeInfo
from firesteel.errors import InvalidProgramError, TypeMismatchError
from firesteel.stability import public_evolving

__all__ = [
    "BasicArrayTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PrimitiveArrayTypeInfo",
]

_PRIMITIVES = frozenset(
    {
        BasicType.BOOLEAN,
        BasicType.BYTE,
        BasicType.SHORT,
        BasicType.INT,
        BasicType.LONG,
        BasicType.FLOAT,
        BasicType.DOUBLE,
        BasicType.CHAR,
    }
)


class _SequenceTypeInfo(TypeInformation):
    """Base class of lists and arrays: a Python list whose elements have one type."""

    __slots__ = ("elem_type",)

    _nullable_elements = False

    def __init__(self, element_type: TypeInformation) -> None:
        self.elem_type = element_type

    @property
    def contains_rows(self) -> bool:
        return self.elem_type.contains_rows

    @public_evolving
    def get_element_type(self) -> TypeInformation:
        """Return the type of the elements. Not in PyFlink.

        >>> Types.LIST(Types.STRING()).get_element_type()
        String
        """
        return self.elem_type

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if kinds != {list}:
            values = [self._as_list(value) for value in values]
        if self.elem_type.is_pickled:
            return values
        flat = list(chain.from_iterable(values))
        try:
            converted = self.elem_type.convert_batch(flat, self._nullable_elements)
        except TypeMismatchError:
            self._raise_for_first(values)
            raise
        if converted is flat:
            return values
        rest = iter(converted)
        return [list(islice(rest, len(value))) for value in values]

    def _as_list(self, value: Any) -> list[Any]:
        if isinstance(value, list | tuple):
            return list(value)
        if isinstance(value, array) or hasattr(value, "tolist"):
            elements: list[Any] = value.tolist()  # NumPy arrays have this method too
            return elements
        raise self._unexpected(value, "list")

    def _raise_for_first(self, values: list[Any]) -> None:
        for value in values:
            for position, element in enumerate(value):
                try:
                    self.elem_type.convert_batch([element], self._nullable_elements)
                except TypeMismatchError as error:
                    raise self._mismatch(value, f"element {position}: {error.reason}") from None

    def to_java_string(self, value: Any) -> str:
        if isinstance(value, bytes):
            # Java's bytes are signed.
            value = [byte - 256 if byte > 127 else byte for byte in value]
        return f"[{', '.join(nested_java_string(self.elem_type, element) for element in value)}]"

    def to_arrow_type(self) -> pa.DataType:
        return pa.list_(self.elem_type.to_arrow_type())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.elem_type == other.elem_type

    def __hash__(self) -> int:
        return hash((type(self), self.elem_type))

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.elem_type}>"


class ListTypeInfo(_SequenceTypeInfo):
    """A list whose elements are not None. As in PyFlink, a list of BYTE may also be bytes.

    >>> Types.LIST(Types.LONG()).convert_batch([[1, 2], (3, 4)])
    [[1, 2], [3, 4]]
    """

    __slots__ = ()

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if kinds & {bytes, bytearray} and _is_byte(self.elem_type):
            if kinds == {bytes}:
                return values
            return [
                bytes(value)
                if isinstance(value, bytes | bytearray)
                else super(ListTypeInfo, self)._convert([value], {type(value)})[0]
                for value in values
            ]
        return super()._convert(values, kinds)


class BasicArrayTypeInfo(_SequenceTypeInfo):
    """An array of boxed values. Elements may be None.

    >>> Types.BASIC_ARRAY(Types.STRING()).convert_batch([["a", None]])
    [['a', None]]
    """

    __slots__ = ()

    _nullable_elements = True

    def __init__(self, element_type: TypeInformation) -> None:
        if not _is_one_of(element_type, _PRIMITIVES | {BasicType.STRING}):
            raise InvalidProgramError(
                f"BASIC_ARRAY takes a number, boolean, char or string type, not {element_type}. "
                "Use Types.OBJECT_ARRAY."
            )
        super().__init__(element_type)


class ObjectArrayTypeInfo(_SequenceTypeInfo):
    """An array of any type. Elements may be None.

    >>> Types.OBJECT_ARRAY(Types.BIG_INT()).convert_batch([[1 << 70, None]])
    [[1180591620717411303424, None]]
    """

    __slots__ = ()

    _nullable_elements = True


class PrimitiveArrayTypeInfo(_SequenceTypeInfo):
    """An array whose elements are not None. In Python an array of BYTE is bytes.

    >>> Types.PRIMITIVE_ARRAY(Types.BYTE()).convert_batch([bytearray(b"abc")])
    [b'abc']
    """

    __slots__ = ()

    def __init__(self, element_type: TypeInformation) -> None:
        if not _is_one_of(element_type, _PRIMITIVES):
            raise InvalidProgramError(
                f"PRIMITIVE_ARRAY takes a number, boolean or char type, not {element_type}. "
                "Use Types.OBJECT_ARRAY."
            )
        super().__init__(element_type)

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if not _is_byte(self.elem_type):
            return super()._convert(values, kinds)
        if kinds == {bytes}:
            return values
        return [self._as_bytes(value) for value in values]

    def _as_bytes(self, value: Any) -> bytes:
        if not isinstance(value, bytes | bytearray):
            raise self._unexpected(value, "bytes")
        return bytes(value)

    def to_arrow_type(self) -> pa.DataType:
        return pa.binary() if _is_byte(self.elem_type) else super().to_arrow_type()


class MapTypeInfo(TypeInformation):
    """A dict. Values may be None, keys may not.

    >>> counts = Types.MAP(Types.STRING(), Types.LONG())
    >>> counts.get_key_type(), counts.get_value_type()
    (String, Long)
    >>> counts.to_java_string({"be": 2, "not": None})
    '{be=2, not=null}'
    """

    __slots__ = ("_key_type_info", "_value_type_info")

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        self._key_type_info = key_type_info
        self._value_type_info = value_type_info

    @property
    def contains_rows(self) -> bool:
        return self.get_key_type().contains_rows or self.get_value_type().contains_rows

    @public_evolving
    def get_key_type(self) -> TypeInformation:
        """Return the type of the keys. Not in PyFlink."""
        return self._key_type_info

    @public_evolving
    def get_value_type(self) -> TypeInformation:
        """Return the type of the values. Not in PyFlink."""
        return self._value_type_info

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if kinds != {dict}:
            values = [self._as_dict(value) for value in values]
        keys = list(chain.from_iterable(values))
        elements = list(chain.from_iterable(map(dict.values, values)))
        try:
            new_keys = self._key_type_info.convert_batch(keys)
            new_elements = self._value_type_info.convert_batch(elements, nullable=True)
        except TypeMismatchError:
            self._raise_for_first(values)
            raise
        if new_keys is keys and new_elements is elements:
            return values
        pairs = zip(new_keys, new_elements, strict=True)
        return [dict(islice(pairs, len(value))) for value in values]

    def _as_dict(self, value: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise self._unexpected(value, "dict")
        return dict(value)

    def _raise_for_first(self, values: Iterable[dict[Any, Any]]) -> None:
        for value in values:
            for key, element in value.items():
                try:
                    self._key_type_info.convert_batch([key])
                except TypeMismatchError as error:
                    raise self._mismatch(value, f"key {error.value}: {error.reason}") from None
                try:
                    self._value_type_info.convert_batch([element], nullable=True)
                except TypeMismatchError as error:
                    raise self._mismatch(value, f"value of {key!r}: {error.reason}") from None

    def to_java_string(self, value: Any) -> str:
        pairs = (
            f"{nested_java_string(self._key_type_info, key)}="
            f"{nested_java_string(self._value_type_info, element)}"
            for key, element in value.items()
        )
        return f"{{{', '.join(pairs)}}}"

    def to_arrow_type(self) -> pa.DataType:
        return pa.map_(self._key_type_info.to_arrow_type(), self._value_type_info.to_arrow_type())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MapTypeInfo)
            and self._key_type_info == other._key_type_info
            and self._value_type_info == other._value_type_info
        )

    def __hash__(self) -> int:
        return hash((MapTypeInfo, self._key_type_info, self._value_type_info))

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self._key_type_info}, {self._value_type_info}>"


def _is_one_of(type_info: TypeInformation, basic_types: Iterable[BasicType]) -> bool:
    return isinstance(type_info, BasicTypeInfo) and type_info.basic_type in basic_types


def _is_byte(type_info: TypeInformation) -> bool:
    return isinstance(type_info, BasicTypeInfo) and type_info.basic_type is BasicType.BYTE
