"""Types, the factory of type information."""

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
    """Creates the types of streams and state.

    >>> Types.TUPLE([Types.STRING(), Types.LONG()])
    TupleTypeInfo(String, Long)
    >>> words = env.from_collection([("be", 2)], Types.TUPLE([Types.STRING(), Types.LONG()]))
    >>> words.map(lambda pair: pair[1], output_type=Types.LONG()).get_type()
    Long
    """

    @staticmethod
    def STRING() -> TypeInformation:
        """Return the type of ``str``.

        >>> Types.STRING().to_java_string("be")
        'be'
        """
        return StringTypeInfo(BasicType.STRING)

    @staticmethod
    def BYTE() -> TypeInformation:
        """Return the type of an int of 8 bits.

        >>> Types.BYTE().convert_batch([128])
        Traceback (most recent call last):
        firesteel.errors.TypeMismatchError: ... expected an int from -128 to 127.
        """
        return IntegerTypeInfo(BasicType.BYTE)

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        """Return the type of True and False.

        >>> Types.BOOLEAN().to_java_string(True)
        'true'
        """
        return BooleanTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def SHORT() -> TypeInformation:
        """Return the type of an int of 16 bits.

        >>> Types.SHORT().convert_batch([32767])
        [32767]
        """
        return IntegerTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT() -> TypeInformation:
        """Return the type of an int of 32 bits.

        >>> Types.INT().convert_batch([2**31])
        Traceback (most recent call last):
        firesteel.errors.TypeMismatchError: ... expected an int from -2147483648 to 2147483647.
        """
        return IntegerTypeInfo(BasicType.INT)

    @staticmethod
    def LONG() -> TypeInformation:
        """Return the type of an int of 64 bits.

        >>> Types.LONG().convert_batch([2**31])
        [2147483648]
        """
        return IntegerTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT() -> TypeInformation:
        """Return the type of a float that is rounded to 32 bits.

        >>> Types.FLOAT().convert_batch([0.1])
        [0.10000000149011612]
        """
        return FloatingTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE() -> TypeInformation:
        """Return the type of a float of 64 bits.

        >>> Types.DOUBLE().convert_batch([0.1, 1])
        [0.1, 1.0]
        """
        return FloatingTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR() -> TypeInformation:
        """Return the type of a character, as ``str``.

        >>> Types.CHAR().convert_batch(["a"])
        ['a']
        """
        return StringTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """Return the type of an int of any size.

        >>> Types.BIG_INT().convert_batch([1 << 70])
        [1180591620717411303424]
        """
        return BigIntTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """Return the type of ``decimal.Decimal``.

        >>> Types.BIG_DEC().convert_batch(["0.1", 2])
        [Decimal('0.1'), Decimal('2')]
        """
        return BigDecTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT() -> TypeInformation:
        """Return the type of ``firesteel.common.Instant``. Values may be None.

        >>> Types.INSTANT().to_java_string(Instant.of_epoch_milli(1500))
        '1970-01-01T00:00:01.500Z'
        """
        return InstantTypeInfo()

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        """Return the type of ``datetime.date``.

        >>> from datetime import date
        >>> Types.SQL_DATE().to_java_string(date(2024, 3, 9))
        '2024-03-09'
        """
        return DateTypeInfo()

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        """Return the type of ``datetime.time``, in milliseconds.

        >>> from datetime import time
        >>> Types.SQL_TIME().to_java_string(time(7, 5))
        '07:05:00'
        """
        return TimeTypeInfo()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        """Return the type of ``datetime.datetime``, in milliseconds and without a time zone.

        >>> from datetime import datetime
        >>> Types.SQL_TIMESTAMP().to_java_string(datetime(2024, 3, 9, 7, 5))
        '2024-03-09 07:05:00.0'
        """
        return TimestampTypeInfo()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Return the type of any Python object.

        >>> Types.PICKLED_BYTE_ARRAY().convert_batch(["a", 1, None])
        ['a', 1, None]
        """
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """Return the type of a Row whose fields have the names f0, f1, and so on.

        Args:
            field_types: The types of the fields.

        >>> Types.ROW([Types.STRING(), Types.INT()]).convert_batch([("Alice", 11)])
        [Row(f0='Alice', f1=11)]
        """
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(
        field_names: Sequence[str], field_types: Sequence[TypeInformation]
    ) -> RowTypeInfo:
        """Return the type of a Row with field names.

        Args:
            field_names: The names of the fields.
            field_types: The types of the fields, in the same order.

        Raises:
            InvalidProgramError: The numbers of names and types differ, or a name is repeated.

        >>> Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
        RowTypeInfo(name: String, age: Integer)
        """
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        """Return the type of a tuple.

        Args:
            field_types: The types of the fields.

        >>> Types.TUPLE([Types.STRING(), Types.LONG()]).to_java_string(("be", 2))
        '(be,2)'
        """
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Return the type of a list of numbers, booleans or characters without None.

        Args:
            element_type: The type of the elements. With BYTE the value is ``bytes``, not a list.

        Raises:
            InvalidProgramError: The element type is not a number, boolean or char type.

        >>> Types.PRIMITIVE_ARRAY(Types.INT()).convert_batch([[1, 2]])
        [[1, 2]]
        """
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Return the type of a list of numbers, booleans, characters or strings, or None elements.

        Args:
            element_type: The type of the elements.

        Raises:
            InvalidProgramError: The element type is not a number, boolean, char or string type.

        >>> Types.BASIC_ARRAY(Types.INT()).to_java_string([1, None])
        '[1, null]'
        """
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Return the type of a list with elements of any type. Elements may be None.

        Args:
            element_type: The type of the elements.

        >>> Types.OBJECT_ARRAY(Types.TUPLE([Types.INT()])).to_java_string([(1,), None])
        '[(1), null]'
        """
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:
        """Return the type of a dict.

        Args:
            key_type_info: The type of the keys, which must not be None.
            value_type_info: The type of the values, which may be None.

        >>> Types.MAP(Types.STRING(), Types.INT()).to_java_string({"be": 2})
        '{be=2}'
        """
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:
        """Return the type of a list without None.

        Args:
            element_type_info: The type of the elements.

        >>> Types.LIST(Types.STRING()).convert_batch([["be", None]])
        Traceback (most recent call last):
        firesteel.errors.TypeMismatchError: ... element 1: None is not allowed here, expected str.
        """
        return ListTypeInfo(element_type_info)
