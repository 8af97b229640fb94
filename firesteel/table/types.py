"""SQL types of columns, as file formats declare them.

Each type knows its TypeInformation, which describes the values in a stream, and its Arrow type,
which describes the column in a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types
from firesteel.stability import public_evolving

__all__ = [
    "ArrayType",
    "DataType",
    "DataTypes",
    "MapType",
    "NumericType",
    "RowField",
    "RowType",
    "row_type_info",
]


class DataType:
    """The type of a column.

    Args:
        name: The name of the type in SQL.
        type_info: The type of the values in a stream.
        arrow_type: The type of the column in a file.
        nullable: False if values are never None.

    >>> from firesteel.table import DataTypes
    >>> DataTypes.DECIMAL(10, 2)
    DECIMAL(10, 2)
    >>> DataTypes.BIGINT(nullable=False)
    BIGINT NOT NULL
    """

    def __init__(
        self, name: str, type_info: TypeInformation, arrow_type: pa.DataType, nullable: bool = True
    ) -> None:
        self._name = name
        self._type_info = type_info
        self._arrow_type = arrow_type
        self._nullable = nullable

    @public_evolving
    def to_type_info(self) -> TypeInformation:
        """Return the type of the values in a stream. Not in PyFlink.

        >>> from firesteel.table import DataTypes
        >>> DataTypes.BIGINT().to_type_info()
        Long
        """
        return self._type_info

    @public_evolving
    def to_arrow_type(self) -> pa.DataType:
        """Return the type of the column in a file. Not in PyFlink.

        >>> from firesteel.table import DataTypes
        >>> DataTypes.DECIMAL(10, 2).to_arrow_type()
        Decimal128Type(decimal128(10, 2))
        """
        return self._arrow_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataType) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return self._name if self._nullable else f"{self._name} NOT NULL"


class NumericType(DataType):
    """The type of a column of numbers.

    >>> from firesteel.table import DataTypes
    >>> isinstance(DataTypes.INT(), type(DataTypes.DOUBLE()))
    True
    """


class ArrayType(DataType):
    """The type of a column of lists.

    Args:
        element_type: The type of the elements.
        nullable: False if values are never None.

    >>> from firesteel.table import DataTypes
    >>> DataTypes.ARRAY(DataTypes.STRING()).element_type
    STRING
    """

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        self.element_type = element_type
        super().__init__(
            f"ARRAY<{element_type}>",
            Types.OBJECT_ARRAY(element_type.to_type_info()),
            pa.list_(element_type.to_arrow_type()),
            nullable,
        )


class MapType(DataType):
    """The type of a column of dicts.

    Args:
        key_type: The type of the keys.
        value_type: The type of the values.
        nullable: False if values are never None.

    >>> from firesteel.table import DataTypes
    >>> DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())
    MAP<STRING, INT>
    """

    def __init__(self, key_type: DataType, value_type: DataType, nullable: bool = True) -> None:
        self.key_type = key_type
        self.value_type = value_type
        super().__init__(
            f"MAP<{key_type}, {value_type}>",
            Types.MAP(key_type.to_type_info(), value_type.to_type_info()),
            pa.map_(key_type.to_arrow_type(), value_type.to_arrow_type()),
            nullable,
        )


class RowField:
    """A named column.

    Args:
        name: The name of the column.
        data_type: Its type.
        description: A note for readers.

    >>> from firesteel.table import DataTypes
    >>> DataTypes.FIELD("price", DataTypes.DOUBLE())
    `price` DOUBLE
    """

    def __init__(self, name: str, data_type: DataType, description: str | None = None) -> None:
        self.name = name
        self.data_type = data_type
        self.description = description

    def __repr__(self) -> str:
        return f"`{self.name}` {self.data_type}"


class RowType(DataType):
    """The columns of a file.

    Args:
        fields: The columns.
        nullable: False if rows are never None.

    >>> from firesteel.table import DataTypes
    >>> DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT())])
    ROW<`id` INT>
    """

    def __init__(self, fields: Sequence[RowField], nullable: bool = True) -> None:
        self.fields = list(fields)
        self.names = [field.name for field in self.fields]
        super().__init__(
            f"ROW<{', '.join(map(repr, self.fields))}>",
            Types.ROW_NAMED(self.names, [one.data_type.to_type_info() for one in self.fields]),
            pa.struct([(one.name, one.data_type.to_arrow_type()) for one in self.fields]),
            nullable,
        )

    def field_types(self) -> list[DataType]:
        """Return the types of the columns.

        >>> from firesteel.table import DataTypes
        >>> DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT())]).field_types()
        [INT]
        """
        return [field.data_type for field in self.fields]


class DataTypes:
    """Creates types of columns, with PyFlink's names.

    >>> from firesteel.table import DataTypes
    >>> DataTypes.ROW(
    ...     [
    ...         DataTypes.FIELD("id", DataTypes.BIGINT(nullable=False)),
    ...         DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING())),
    ...     ]
    ... )
    ROW<`id` BIGINT NOT NULL, `tags` ARRAY<STRING>>
    >>> DataTypes.BOOLEAN(), DataTypes.TINYINT(), DataTypes.SMALLINT(), DataTypes.INT()
    (BOOLEAN, TINYINT, SMALLINT, INT)
    >>> DataTypes.FLOAT(), DataTypes.DOUBLE(), DataTypes.DECIMAL(10, 2)
    (FLOAT, DOUBLE, DECIMAL(10, 2))
    >>> DataTypes.CHAR(1), DataTypes.VARCHAR(9), DataTypes.BINARY(1), DataTypes.VARBINARY(9)
    (CHAR(1), VARCHAR(9), BINARY(1), VARBINARY(9))
    >>> DataTypes.BYTES(), DataTypes.DATE(), DataTypes.TIME()
    (BYTES, DATE, TIME(0))
    >>> DataTypes.TIMESTAMP(3), DataTypes.TIMESTAMP_LTZ()
    (TIMESTAMP(3), TIMESTAMP_LTZ(6))
    >>> DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())
    MAP<STRING, INT>
    """

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> DataType:
        """Return the type of ``bool`` values."""
        return DataType("BOOLEAN", Types.BOOLEAN(), pa.bool_(), nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> NumericType:
        """Return the type of integers of 8 bits."""
        return NumericType("TINYINT", Types.BYTE(), pa.int8(), nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> NumericType:
        """Return the type of integers of 16 bits."""
        return NumericType("SMALLINT", Types.SHORT(), pa.int16(), nullable)

    @staticmethod
    def INT(nullable: bool = True) -> NumericType:
        """Return the type of integers of 32 bits."""
        return NumericType("INT", Types.INT(), pa.int32(), nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> NumericType:
        """Return the type of integers of 64 bits."""
        return NumericType("BIGINT", Types.LONG(), pa.int64(), nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> NumericType:
        """Return the type of floating-point numbers of 32 bits."""
        return NumericType("FLOAT", Types.FLOAT(), pa.float32(), nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> NumericType:
        """Return the type of floating-point numbers of 64 bits."""
        return NumericType("DOUBLE", Types.DOUBLE(), pa.float64(), nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> NumericType:
        """Return the type of ``decimal.Decimal`` values.

        Args:
            precision: The number of digits, up to 38.
            scale: The number of digits after the decimal point.
            nullable: False if values are never None.
        """
        arrow_type = pa.decimal128(precision, scale)
        return NumericType(f"DECIMAL({precision}, {scale})", Types.BIG_DEC(), arrow_type, nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> DataType:
        """Return the type of texts."""
        return DataType("STRING", Types.STRING(), pa.string(), nullable)

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> DataType:
        """Return the type of texts of a length. Firesteel does not check the length.

        Args:
            length: The number of characters.
            nullable: False if values are never None.
        """
        return DataType(f"CHAR({length})", Types.STRING(), pa.string(), nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> DataType:
        """Return the type of texts up to a length. Firesteel does not check the length.

        Args:
            length: The highest number of characters.
            nullable: False if values are never None.
        """
        return DataType(f"VARCHAR({length})", Types.STRING(), pa.string(), nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> DataType:
        """Return the type of ``bytes`` values."""
        return DataType("BYTES", Types.PRIMITIVE_ARRAY(Types.BYTE()), pa.binary(), nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> DataType:
        """Return the type of ``bytes`` values of a length. Firesteel does not check the length.

        Args:
            length: The number of bytes.
            nullable: False if values are never None.
        """
        of_bytes = Types.PRIMITIVE_ARRAY(Types.BYTE())
        return DataType(f"BINARY({length})", of_bytes, pa.binary(), nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> DataType:
        """Return the type of ``bytes`` values up to a length. Firesteel does not check the length.

        Args:
            length: The highest number of bytes.
            nullable: False if values are never None.
        """
        of_bytes = Types.PRIMITIVE_ARRAY(Types.BYTE())
        return DataType(f"VARBINARY({length})", of_bytes, pa.binary(), nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DataType:
        """Return the type of ``datetime.date`` values."""
        return DataType("DATE", Types.SQL_DATE(), pa.date32(), nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> DataType:
        """Return the type of ``datetime.time`` values.

        Args:
            precision: The digits of the fraction of a second.
            nullable: False if values are never None.
        """
        arrow_type = pa.time32("ms") if precision <= 3 else pa.time64("us")
        return DataType(f"TIME({precision})", Types.SQL_TIME(), arrow_type, nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> DataType:
        """Return the type of ``datetime.datetime`` values without a time zone.

        Args:
            precision: The digits of the fraction of a second. Values have at most 6.
            nullable: False if values are never None.
        """
        arrow_type = pa.timestamp("ms" if precision <= 3 else "us")
        return DataType(f"TIMESTAMP({precision})", Types.SQL_TIMESTAMP(), arrow_type, nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> DataType:
        """Return the type of ``Instant`` values.

        Args:
            precision: The digits of the fraction of a second. Values have at most 6.
            nullable: False if values are never None.
        """
        arrow_type = pa.timestamp("ms" if precision <= 3 else "us", tz="UTC")
        return DataType(f"TIMESTAMP_LTZ({precision})", Types.INSTANT(), arrow_type, nullable)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> ArrayType:
        """Return the type of lists.

        Args:
            element_type: The type of the elements.
            nullable: False if values are never None.
        """
        return ArrayType(element_type, nullable)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> MapType:
        """Return the type of dicts.

        Args:
            key_type: The type of the keys.
            value_type: The type of the values.
            nullable: False if values are never None.
        """
        return MapType(key_type, value_type, nullable)

    @staticmethod
    def ROW(row_fields: Sequence[RowField] = (), nullable: bool = True) -> RowType:
        """Return the type of rows.

        Args:
            row_fields: The columns.
            nullable: False if rows are never None.
        """
        return RowType(row_fields, nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:
        """Return a named column.

        Args:
            name: The name of the column.
            data_type: Its type.
            description: A note for readers.
        """
        return RowField(name, data_type, description)


def row_type_info(row_type: Any, user: str) -> tuple[RowTypeInfo, pa.Schema]:
    """Return the type of rows in a stream and the columns of their file.

    Args:
        row_type: A RowType, or a RowTypeInfo.
        user: The function that takes it, for the error.

    >>> row_type_info(Types.ROW_NAMED(["id"], [Types.INT()]), "read")[1].names
    ['id']
    """
    if isinstance(row_type, RowType):
        type_info = row_type.to_type_info()
        arrow_type = row_type.to_arrow_type()
    elif isinstance(row_type, RowTypeInfo):
        type_info, arrow_type = row_type, row_type.to_arrow_type()
    else:
        raise TypeError(
            f"{user} needs DataTypes.ROW(...) or Types.ROW_NAMED(...), got {row_type!r}"
        )
    assert isinstance(type_info, RowTypeInfo)
    return type_info, pa.schema(list(arrow_type))
