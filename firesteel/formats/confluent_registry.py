"""Messages whose schemas are in a Confluent Schema Registry: Avro and JSON.

A message begins with a zero byte and the number of its schema. The registry knows the schema of a
number, and gives a new schema its number. A task asks once for each schema.
"""

from __future__ import annotations

import base64
import json
import ssl
import struct
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from firesteel.common.serialization import DeserializationSchema, SerializationSchema
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation
from firesteel.errors import ConfigurationError, FiresteelError, shorten
from firesteel.formats.avro import (
    AvroSchema,
    GenericRecordAvroTypeInfo,
    decode_message,
    encode_message,
)
from firesteel.formats.json import (
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
    schema_of_type,
)
from firesteel.stability import public_evolving

__all__ = [
    "ConfluentRegistryAvroDeserializationSchema",
    "ConfluentRegistryAvroSerializationSchema",
    "ConfluentRegistryJsonDeserializationSchema",
    "ConfluentRegistryJsonSerializationSchema",
    "SchemaRegistryError",
]

_HEADER = struct.Struct(">bI")
_AVRO, _JSON = "AVRO", "JSON"
_CONTENT = "application/vnd.schemaregistry.v1+json"
_SECONDS = 30.0

_USER = "basic.auth.user.info"
_BEARER = "bearer.auth.token"
_TRUST = "schema.registry.ssl.truststore.location"
_KNOWN = {
    _USER: None,
    _BEARER: None,
    _TRUST: None,
    "basic.auth.credentials.source": "USER_INFO",
    "bearer.auth.credentials.source": "STATIC_TOKEN",
    "schema.registry.ssl.truststore.type": "PEM",
}


@public_evolving
class SchemaRegistryError(FiresteelError, ValueError):
    """A schema registry does not answer, or refuses a request. Not in PyFlink.

    >>> from firesteel.datastream.formats.confluent_registry import SchemaRegistryError
    >>> raise SchemaRegistryError("http://localhost:8081", "asked for schema 7", "no such schema")
    Traceback (most recent call last):
    firesteel.formats.confluent_registry.SchemaRegistryError: The schema registry at ...
    """

    def __init__(self, url: str, what: str, reason: str) -> None:
        super().__init__(f"The schema registry at {url} was {what}, and failed: {reason}")
        self.url = url
        self.reason = reason


class SchemaRegistry:
    """A client of a registry. It remembers schemas and their numbers."""

    def __init__(self, url: str, configs: Mapping[str, str] | None) -> None:
        """Create a client. It connects at the first request.

        Args:
            url: The address, such as ``http://localhost:8081``.
            configs: Settings with Confluent's names, or None.
        """
        configs = dict(configs or {})
        for name, value in configs.items():
            wanted = _KNOWN.get(name, "")
            if wanted == "" or (wanted is not None and value != wanted):
                raise ConfigurationError(
                    f"The setting {name} = {value} of a schema registry is not supported. "
                    f"Firesteel supports {', '.join(sorted(_KNOWN))}.",
                    key=name,
                )
        self.arguments = (url, configs)
        self.url = url.rstrip("/")
        self._configs = configs
        self._schemas: dict[int, tuple[str, str]] = {}
        self._numbers: dict[tuple[str, str], int] = {}

    def schema(self, number: int, kind: str) -> str:
        """Return the schema of a number, which must be of a kind."""
        if number not in self._schemas:
            answer = self._request(f"/schemas/ids/{number}", f"asked for schema {number}")
            if answer.get("references"):
                raise SchemaRegistryError(
                    self.url,
                    f"asked for schema {number}",
                    "the schema refers to other schemas, which Firesteel does not support",
                )
            self._schemas[number] = answer.get("schemaType", _AVRO), answer["schema"]
        found, text = self._schemas[number]
        if found != kind:
            raise ValueError(
                f"A message has schema {number} of {self.url}, which is a schema of {found}, not "
                f"of {kind}"
            )
        return text

    def number(self, subject: str, schema: str, kind: str) -> int:
        """Register a schema, if it is new, and return its number."""
        if (subject, schema) not in self._numbers:
            body = {"schema": schema} if kind == _AVRO else {"schema": schema, "schemaType": kind}
            answer = self._request(
                f"/subjects/{urllib.parse.quote(subject, safe='')}/versions",
                f"given a schema of {subject}",
                body,
            )
            self._numbers[subject, schema] = int(answer["id"])
        return self._numbers[subject, schema]

    def _request(self, path: str, what: str, body: dict[str, str] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": _CONTENT, "Content-Type": _CONTENT, **self._authorization()}
        request = urllib.request.Request(f"{self.url}{path}", data, headers)
        context = None
        if self.url.startswith("https:"):
            context = ssl.create_default_context(cafile=self._configs.get(_TRUST))
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS, context=context) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            raise SchemaRegistryError(self.url, what, _explained(error)) from error
        except (OSError, ValueError) as error:
            raise SchemaRegistryError(self.url, what, str(error)) from error

    def _authorization(self) -> dict[str, str]:
        if user := self._configs.get(_USER):
            return {"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"}
        if token := self._configs.get(_BEARER):
            return {"Authorization": f"Bearer {token}"}
        return {}


def _explained(error: urllib.error.HTTPError) -> str:
    try:
        reason = json.load(error)["message"]
    except (OSError, ValueError, KeyError, TypeError):
        reason = error.reason
    hint = f" Check {_USER}." if error.code in (401, 403) else ""
    return f"{reason} (HTTP {error.code}).{hint}"


def _take_apart(message: bytes) -> tuple[int, bytes]:
    """Return the number of the schema, and the rest of the message."""
    if len(message) < _HEADER.size or message[0] != 0:
        raise ValueError(
            f"The message {shorten(message)} does not begin with the number of a schema: a client "
            "of the schema registry did not write it"
        )
    return _HEADER.unpack_from(message)[1], message[_HEADER.size :]


@public_evolving
class ConfluentRegistryAvroDeserializationSchema(DeserializationSchema):
    """Reads Avro messages whose schemas are in a Confluent Schema Registry. Not in PyFlink.

    >>> from firesteel.datastream.formats.avro import AvroSchema
    >>> from firesteel.datastream.formats.confluent_registry import (
    ...     ConfluentRegistryAvroDeserializationSchema,
    ... )
    >>> text = '{"type": "record", "name": "P", "fields": [{"name": "age", "type": "int"}]}'
    >>> schema = ConfluentRegistryAvroDeserializationSchema.for_generic(
    ...     AvroSchema.parse_string(text), "http://localhost:8081"
    ... )
    >>> schema.deserialize(b"no header")
    Traceback (most recent call last):
    ValueError: The message b'no header' does not begin with the number of a schema: ...
    """

    def __init__(self, schema: AvroSchema, registry: SchemaRegistry) -> None:
        self._schema = schema
        self._registry = registry
        self._writers: dict[int, AvroSchema] = {}

    @staticmethod
    def for_generic(
        schema: AvroSchema, url: str, registry_configs: Mapping[str, str] | None = None
    ) -> ConfluentRegistryAvroDeserializationSchema:
        """Return a schema whose records are dicts.

        Args:
            schema: The schema of the records. Messages that were written with a different version
                of it are converted by Avro's rules.
            url: The address of the registry.
            registry_configs: Settings with Confluent's names: ``basic.auth.user.info`` as
                ``user:password``, ``bearer.auth.token``, and
                ``schema.registry.ssl.truststore.location`` as a PEM file.
        """
        registry = SchemaRegistry(url, registry_configs)
        return ConfluentRegistryAvroDeserializationSchema(schema, registry)

    def deserialize(self, message: bytes) -> Any:
        number, data = _take_apart(message)
        writer = self._writers.get(number)
        if writer is None:
            text = self._registry.schema(number, _AVRO)
            writer = self._writers[number] = AvroSchema.parse_string(text)
        return decode_message(data, writer, self._schema)

    def get_produced_type(self) -> TypeInformation:
        return GenericRecordAvroTypeInfo(self._schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).for_generic, (self._schema, *self._registry.arguments)


@public_evolving
class ConfluentRegistryAvroSerializationSchema(SerializationSchema):
    """Writes Avro messages, and registers their schema at a Confluent Schema Registry. Not in PyFlink.

    >>> from firesteel.datastream.formats.avro import AvroSchema
    >>> from firesteel.datastream.formats.confluent_registry import (
    ...     ConfluentRegistryAvroSerializationSchema,
    ... )
    >>> text = '{"type": "record", "name": "P", "fields": [{"name": "age", "type": "int"}]}'
    >>> schema = ConfluentRegistryAvroSerializationSchema.for_generic(
    ...     "people-value", AvroSchema.parse_string(text), "http://localhost:8081"
    ... )
    """

    def __init__(self, subject: str, schema: AvroSchema, registry: SchemaRegistry) -> None:
        self._subject = subject
        self._schema = schema
        self._registry = registry

    @staticmethod
    def for_generic(
        subject: str,
        schema: AvroSchema,
        url: str,
        registry_configs: Mapping[str, str] | None = None,
    ) -> ConfluentRegistryAvroSerializationSchema:
        """Return a schema for dicts, or rows.

        Args:
            subject: The name of the schema in the registry: ``<topic>-value`` as a rule.
            schema: The schema of the records.
            url: The address of the registry.
            registry_configs: Settings with Confluent's names.
        """
        registry = SchemaRegistry(url, registry_configs)
        return ConfluentRegistryAvroSerializationSchema(subject, schema, registry)

    def serialize(self, element: Any) -> bytes:
        number = self._registry.number(self._subject, str(self._schema), _AVRO)
        return _HEADER.pack(0, number) + encode_message(element, self._schema)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._subject, self._schema, *self._registry.arguments)
        return type(self).for_generic, arguments


@public_evolving
class ConfluentRegistryJsonDeserializationSchema(DeserializationSchema):
    """Reads JSON messages whose JSON Schemas are in a Confluent Schema Registry. Not in PyFlink.

    >>> from firesteel.datastream.formats.confluent_registry import (
    ...     ConfluentRegistryJsonDeserializationSchema,
    ... )
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> schema = ConfluentRegistryJsonDeserializationSchema.for_type_info(
    ...     person, "http://localhost:8081"
    ... )
    """

    def __init__(self, type_info: RowTypeInfo, registry: SchemaRegistry) -> None:
        self._type_info = type_info
        self._registry = registry
        builder = JsonRowDeserializationSchema.builder().type_info(type_info)
        self._json = builder.build()

    @staticmethod
    def for_type_info(
        type_info: RowTypeInfo, url: str, registry_configs: Mapping[str, str] | None = None
    ) -> ConfluentRegistryJsonDeserializationSchema:
        """Return a schema whose records are rows.

        Args:
            type_info: The type of the rows. Values of a message that do not fit it are errors.
            url: The address of the registry.
            registry_configs: Settings with Confluent's names.
        """
        registry = SchemaRegistry(url, registry_configs)
        return ConfluentRegistryJsonDeserializationSchema(type_info, registry)

    def deserialize(self, message: bytes) -> Any:
        number, data = _take_apart(message)
        self._registry.schema(number, _JSON)
        return self._json.deserialize(data)

    def get_produced_type(self) -> TypeInformation:
        return self._type_info

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).for_type_info, (self._type_info, *self._registry.arguments)


@public_evolving
class ConfluentRegistryJsonSerializationSchema(SerializationSchema):
    """Writes JSON messages, and registers their JSON Schema at a Confluent Schema Registry. Not in PyFlink.

    >>> from firesteel.datastream.formats.confluent_registry import (
    ...     ConfluentRegistryJsonSerializationSchema,
    ... )
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> schema = ConfluentRegistryJsonSerializationSchema.for_type_info(
    ...     "people-value", person, "http://localhost:8081"
    ... )
    """

    def __init__(
        self, subject: str, type_info: RowTypeInfo, registry: SchemaRegistry, json_schema: str
    ) -> None:
        self._subject = subject
        self._type_info = type_info
        self._registry = registry
        self._schema = json_schema
        self._json = JsonRowSerializationSchema.builder().with_type_info(type_info).build()

    @staticmethod
    def for_type_info(
        subject: str,
        type_info: RowTypeInfo,
        url: str,
        registry_configs: Mapping[str, str] | None = None,
        json_schema: str | None = None,
    ) -> ConfluentRegistryJsonSerializationSchema:
        """Return a schema for rows.

        Args:
            subject: The name of the schema in the registry: ``<topic>-value`` as a rule.
            type_info: The type of the rows.
            url: The address of the registry.
            registry_configs: Settings with Confluent's names.
            json_schema: The JSON Schema to register. The default follows from the type.
        """
        text = json_schema
        if text is None:
            head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Record"}
            text = json.dumps({**head, **schema_of_type(type_info)})
        registry = SchemaRegistry(url, registry_configs)
        return ConfluentRegistryJsonSerializationSchema(subject, type_info, registry, text)

    def serialize(self, element: Any) -> bytes:
        number = self._registry.number(self._subject, self._schema, _JSON)
        return _HEADER.pack(0, number) + self._json.serialize(element)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._subject, self._type_info, *self._registry.arguments, self._schema)
        return type(self).for_type_info, arguments
