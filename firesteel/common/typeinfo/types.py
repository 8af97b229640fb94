"""The factory that users write types with."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.common.typeinfo.base import TypeInformation
from firesteel.common.typeinfo.basic import (
    BasicType,
    BigDecTypeInfo,
    BigIntTypeInfo,
    BooleanTypeInfo,
    FloatingTypeInfo,
    IntegerTypeInfo,
    PickledBytesTypeInfo,
    StringTypeInfo,
)
from firesteel.common.typeinfo.collections import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from firesteel.common.typeinfo.composite import RowTypeInfo, TupleTypeInfo
from firesteel.common.typeinfo.temporal import (
    DateTypeInfo,
    InstantTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)

__all__ = ["Types"]


class Types:
    """Gives the type informations of Flink's common types.

    >>> Types.TUPLE([Types.STRING(), Types.LONG()])
    TupleTypeInfo(String, Long)
    """

    @staticmethod
    def STRING() -> TypeInformation:
        """Text."""
        return StringTypeInfo(BasicType.STRING)

    @staticmethod
    def BYTE() -> TypeInformation:
        """An int of 8 bits."""
        return IntegerTypeInfo(BasicType.BYTE)

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        """True or False."""
        return BooleanTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def SHORT() -> TypeInformation:
        """An int of 16 bits."""
        return IntegerTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT() -> TypeInformation:
        """An int of 32 bits."""
        return IntegerTypeInfo(BasicType.INT)

    @staticmethod
    def LONG() -> TypeInformation:
        """An int of 64 bits."""
        return IntegerTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT() -> TypeInformation:
        """A floating point number of 32 bits."""
        return FloatingTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE() -> TypeInformation:
        """A floating point number of 64 bits."""
        return FloatingTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR() -> TypeInformation:
        """A character, as str."""
        return StringTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """An int of any size."""
        return BigIntTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """A decimal.Decimal."""
        return BigDecTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT() -> TypeInformation:
        """A firesteel.common.Instant, or None."""
        return InstantTypeInfo()

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        """A datetime.date."""
        return DateTypeInfo()

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        """A datetime.time in milliseconds."""
        return TimeTypeInfo()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        """A datetime.datetime in milliseconds, without time zone."""
        return TimestampTypeInfo()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Any Python object."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """A Row whose fields are named f0, f1, and so on."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(
        field_names: Sequence[str], field_types: Sequence[TypeInformation]
    ) -> RowTypeInfo:
        """A Row with the given field names."""
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        """A tuple with fields of the given types."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """A list of numbers, booleans or characters; bytes for BYTE."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """A list of numbers, booleans, characters or strings, in which None may stand."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """A list of any type, in which None may stand."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:
        """A dict."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:
        """A list without None."""
        return ListTypeInfo(element_type_info)
