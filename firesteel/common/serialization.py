"""Schemas between records and bytes, for sinks and sources."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from typing import Any, BinaryIO

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.stability import public_evolving

__all__ = [
    "BulkWriter",
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]


class SerializationSchema(ABC):
    """Turns a record into bytes. Derive from it to write your own schema.

    >>> import json
    >>> class JsonSchema(SerializationSchema):
    ...     def serialize(self, element):
    ...         return json.dumps(element).encode()
    >>> JsonSchema().serialize({"user": "ada"})
    b'{"user": "ada"}'
    """

    @abstractmethod
    def serialize(self, element: Any) -> bytes:
        """Return the bytes of one record.

        Args:
            element: The record.
        """


class DeserializationSchema(ABC):
    """Turns bytes into a record. Derive from it to write your own schema.

    >>> import json
    >>> class JsonSchema(DeserializationSchema):
    ...     def deserialize(self, message):
    ...         return json.loads(message)
    ...     def get_produced_type(self):
    ...         return Types.MAP(Types.STRING(), Types.STRING())
    >>> JsonSchema().deserialize(b'{"user": "ada"}')
    {'user': 'ada'}
    """

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """Return the record of one message.

        Args:
            message: The bytes of the message.

        Returns:
            The record, or None to skip the message.
        """

    @public_evolving
    def is_end_of_stream(self, next_element: Any) -> bool:
        """Return True if a record marks the end of the stream. Not in PyFlink.

        As in Flink, KafkaSource does not call it. A KafkaSource stops at offsets.

        Args:
            next_element: The record.

        >>> SimpleStringSchema().is_end_of_stream("last")
        False
        """
        return False

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
        return Types.PICKLED_BYTE_ARRAY()


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Text in a character set.

    Args:
        charset: The name of the character set.

    >>> SimpleStringSchema().serialize("abc")
    b'abc'
    >>> SimpleStringSchema("UTF-16BE").deserialize(bytes([0, 97]))
    'a'
    >>> SimpleStringSchema().get_produced_type()
    String
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        self.charset = _python_codec(charset)

    def serialize(self, element: Any) -> bytes:
        if not isinstance(element, str):
            raise TypeError(f"SimpleStringSchema expects str, got {type(element).__qualname__}.")
        return element.encode(self.charset)

    def deserialize(self, message: bytes) -> str:
        # Like Java's String constructor: bytes that are no text become replacement characters.
        return message.decode(self.charset, errors="replace")

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes without a change.

    >>> ByteArraySchema().serialize(bytearray(b"abc")), ByteArraySchema().deserialize(b"abc")
    (b'abc', b'abc')
    >>> ByteArraySchema().get_produced_type()
    PrimitiveArrayTypeInfo<Byte>
    """

    def serialize(self, element: Any) -> bytes:
        if not isinstance(element, bytes | bytearray):
            raise TypeError(f"ByteArraySchema expects bytes, got {type(element).__qualname__}.")
        return bytes(element)

    def deserialize(self, message: bytes) -> bytes:
        return message

    def get_produced_type(self) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """Takes one field of a Row, which must hold bytes. None becomes no bytes.

    Args:
        field_index: The position of the field, from 0.

    >>> RowFieldExtractorSchema(1).serialize(Row("key", b"value"))
    b'value'
    """

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"A field index must not be negative, got {field_index}.")
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
    r"""Writes a record into a file of FileSink. Derive from it to write your own format.

    >>> import json
    >>> class JsonLines(Encoder):
    ...     def encode(self, element):
    ...         return json.dumps(element).encode() + b"\n"
    >>> JsonLines().encode({"user": "ada"})
    b'{"user": "ada"}\n'
    """

    @abstractmethod
    @public_evolving
    def encode(self, element: Any) -> bytes:
        """Return the bytes of one record, including its separator. Not in PyFlink.

        Args:
            element: The record.
        """

    @public_evolving
    def with_type(self, type_info: TypeInformation) -> Encoder:
        """Return the encoder for a stream of a type. Not in PyFlink.

        Firesteel calls it when the sink is attached to a stream.

        Args:
            type_info: The type of the stream.

        >>> encoder = Encoder.simple_string_encoder().with_type(Types.BOOLEAN())
        >>> encoder.encode(True).decode().strip()
        'true'
        """
        return self

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """Return an encoder that writes a line per record, with the text of Java's ``toString()``.

        Args:
            charset_name: The name of the character set.

        >>> Encoder.simple_string_encoder().encode("abc").decode().strip()
        'abc'
        """
        return SimpleStringEncoder(charset_name)


@public_evolving
class BulkWriter(ABC):
    """Writes the records of one file. A BulkWriterFactory creates it. Not in PyFlink.

    >>> import io
    >>> from firesteel.common.serialization import BulkWriter
    >>> class SortedWriter(BulkWriter):
    ...     def __init__(self, out):
    ...         self._out, self._words = out, []
    ...     def add_element(self, element):
    ...         self._words.append(element)
    ...     def finish(self):
    ...         self._out.write(" ".join(sorted(self._words)).encode())
    >>> out = io.BytesIO()
    >>> writer = SortedWriter(out)
    >>> writer.add_elements(["to", "be"])
    >>> writer.finish()
    >>> out.getvalue()
    b'be to'
    """

    @abstractmethod
    def add_element(self, element: Any) -> None:
        """Write a record. It may stay in memory for now.

        Args:
            element: The record.
        """

    def add_elements(self, elements: list[Any]) -> None:
        """Write records. Override it if many can be written faster than one by one.

        Args:
            elements: The records.
        """
        for element in elements:
            self.add_element(element)

    @abstractmethod
    def finish(self) -> None:
        """Write everything that is in memory, and the end of the file. The sink closes the file."""


class BulkWriterFactory(ABC):
    """The format of the files of ``FileSink.for_bulk_format``. Derive from it to write your own.

    >>> from pathlib import Path
    >>> from firesteel.common.serialization import BulkWriter, BulkWriterFactory
    >>> from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
    >>> class SortedWriter(BulkWriter):
    ...     def __init__(self, out):
    ...         self._out, self._words = out, []
    ...     def add_element(self, element):
    ...         self._words.append(element)
    ...     def finish(self):
    ...         self._out.write(" ".join(sorted(self._words)).encode())
    >>> class SortedWords(BulkWriterFactory):
    ...     def create(self, out):
    ...         return SortedWriter(out)
    >>> builder = FileSink.for_bulk_format("out", SortedWords())
    >>> builder = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    >>> stream = env.from_collection(["to", "be"], Types.STRING()).sink_to(builder.build())
    >>> result = env.execute()
    >>> [path.read_text() for path in Path("out").glob("part-*")]
    ['be to']
    """

    @abstractmethod
    @public_evolving
    def create(self, out: BinaryIO) -> BulkWriter:
        """Create the writer of a file. Not in PyFlink.

        Args:
            out: The file, open for writing.
        """


class SimpleStringEncoder(Encoder):
    """Writes a line of text per record. Without a type the text is ``str(record)``."""

    def __init__(
        self, charset_name: str = "UTF-8", type_info: TypeInformation | None = None
    ) -> None:
        self.charset = _python_codec(charset_name)
        self._type_info = type_info

    def with_type(self, type_info: TypeInformation) -> Encoder:
        return SimpleStringEncoder(self.charset, type_info)

    def encode(self, element: Any) -> bytes:
        type_info = self._type_info
        text = str(element) if type_info is None else type_info.to_java_string(element)
        return f"{text}\n".encode(self.charset)


def _python_codec(charset: str) -> str:
    try:
        return codecs.lookup(charset).name
    except LookupError:
        raise ValueError(f"Unknown character set {charset!r}.") from None
