"""Type information of streams: checks, conversions and text of values."""

from firesteel.common.typeinfo.base import TypeInformation
from firesteel.common.typeinfo.basic import BasicType, BasicTypeInfo, PickledBytesTypeInfo
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
    SqlTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from firesteel.common.typeinfo.types import Types

__all__ = [
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "DateTypeInfo",
    "InstantTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
]
