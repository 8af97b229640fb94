"""Schemas that turn records into bytes and back, for sinks and sources."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.gaps import gap_importer

__all__ = [
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]


class SerializationSchema(ABC):
    """How a record becomes bytes. Derive from it to write your own."""

    @abstractmethod
    def serialize(self, element: Any) -> bytes:
        """Return the bytes of one record."""


class DeserializationSchema(ABC):
    """How bytes become a record. Derive from it to write your own."""

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """Return the record in a message, or None to skip the message."""

    def is_end_of_stream(self, next_element: Any) -> bool:
        """Whether this record marks the end of the stream."""
        return False

    def get_produced_type(self) -> TypeInformation:
        """The type of the records."""
        return Types.PICKLED_BYTE_ARRAY()


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Text in a given character set.

    >>> SimpleStringSchema().serialize("abc")
    b'abc'
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        self._charset = _python_codec(charset)

    def serialize(self, element: Any) -> bytes:
        if not isinstance(element, str):
            raise TypeError(f"SimpleStringSchema writes str, got {type(element).__qualname__}.")
        return element.encode(self._charset)

    def deserialize(self, message: bytes) -> str:
        # Like Java's String constructor: bytes that are no text become replacement characters.
        return message.decode(self._charset, errors="replace")

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are."""

    def serialize(self, element: Any) -> bytes:
        if not isinstance(element, bytes | bytearray):
            raise TypeError(f"ByteArraySchema writes bytes, got {type(element).__qualname__}.")
        return bytes(element)

    def deserialize(self, message: bytes) -> bytes:
        return message

    def get_produced_type(self) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """Takes one field of a Row, which must be bytes already; None gives no bytes."""

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"A field index is not negative, got {field_index}.")
        self._field_index = field_index

    def serialize(self, element: Any) -> bytes:
        value = element[self._field_index]
        if value is None:
            return b""
        if not isinstance(value, bytes | bytearray):
            raise TypeError(
                f"Field {self._field_index} must be bytes, got {type(value).__qualname__}."
            )
        return bytes(value)


class Encoder(ABC):
    """How a file sink writes a record into a file of rows."""

    @abstractmethod
    def encode(self, element: Any) -> bytes:
        """Return the bytes of one record, with its separator."""

    def with_type(self, type_info: TypeInformation) -> Encoder:
        """Return the encoder for a stream of this type; called when the sink is attached."""
        return self

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """One line per record, with the text that Java's toString() gives."""
        return SimpleStringEncoder(charset_name)


class SimpleStringEncoder(Encoder):
    """One line of text per record; without a known type the text is Python's str()."""

    def __init__(
        self, charset_name: str = "UTF-8", type_info: TypeInformation | None = None
    ) -> None:
        self._charset = _python_codec(charset_name)
        self._type_info = type_info

    def with_type(self, type_info: TypeInformation) -> Encoder:
        return SimpleStringEncoder(self._charset, type_info)

    def encode(self, element: Any) -> bytes:
        type_info = self._type_info
        text = str(element) if type_info is None else type_info.to_java_string(element)
        return f"{text}\n".encode(self._charset)


def _python_codec(charset: str) -> str:
    try:
        return codecs.lookup(charset).name
    except LookupError:
        raise ValueError(f"Unknown character set {charset!r}.") from None


if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
