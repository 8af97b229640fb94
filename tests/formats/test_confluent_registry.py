"""Messages with schemas of a registry, against an HTTP server."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common import Row, Types
from firesteel.datastream.formats.avro import AvroSchema
from firesteel.datastream.formats.confluent_registry import (
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
    ConfluentRegistryJsonDeserializationSchema,
    ConfluentRegistryJsonSerializationSchema,
    SchemaRegistryError,
)
from firesteel.errors import ConfigurationError
from firesteel.testing import JobHarness
from tests.servers.schema_registry import SchemaRegistryServer, schema_registry

PERSON = Types.ROW_NAMED(
    ["name", "age", "tags"], [Types.STRING(), Types.INT(), Types.LIST(Types.STRING())]
)


def avro(*fields: Any) -> AvroSchema:
    definition = {"type": "record", "name": "Person", "fields": list(fields)}
    return AvroSchema.parse_string(json.dumps(definition))


NAME = {"name": "name", "type": "string"}
AGE = {"name": "age", "type": ["null", "int"], "default": None}
CITY = {"name": "city", "type": "string"}


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    with schema_registry() as server:
        yield server


def test_a_record_there_and_back(registry: SchemaRegistryServer) -> None:
    schema = avro(NAME, AGE)
    write = ConfluentRegistryAvroSerializationSchema.for_generic("p-value", schema, registry.url)
    read = ConfluentRegistryAvroDeserializationSchema.for_generic(schema, registry.url)
    messages = [write.serialize(record) for record in ({"name": "ada", "age": 36}, Row(name="b"))]
    assert messages[0][:5] == b"\0\0\0\0\1"
    assert [read.deserialize(message) for message in messages] == [
        {"name": "ada", "age": 36},
        {"name": "b", "age": None},
    ]
    # Each schema once, however many messages there are.
    assert registry.requests == ["/subjects/p-value/versions", "/schemas/ids/1"]


def test_messages_of_an_older_schema_are_converted(registry: SchemaRegistryServer) -> None:
    old = ConfluentRegistryAvroSerializationSchema.for_generic("p", avro(NAME), registry.url)
    new = ConfluentRegistryAvroSerializationSchema.for_generic("p", avro(NAME, AGE), registry.url)
    read = ConfluentRegistryAvroDeserializationSchema.for_generic(avro(NAME, AGE), registry.url)
    messages = [old.serialize({"name": "a"}), new.serialize({"name": "b", "age": 7})]
    assert [read.deserialize(one) for one in messages] == [
        {"name": "a", "age": None},
        {"name": "b", "age": 7},
    ]


def test_json_there_and_back(registry: SchemaRegistryServer) -> None:
    url = registry.url
    write = ConfluentRegistryJsonSerializationSchema.for_type_info("p-value", PERSON, url)
    read = ConfluentRegistryJsonDeserializationSchema.for_type_info(PERSON, url)
    rows = [Row(name="ada", age=36, tags=["x"]), Row(name=None, age=1, tags=None)]
    messages = [write.serialize(row) for row in rows]
    assert [read.deserialize(message) for message in messages] == rows


def test_the_json_schema_fits_the_messages(registry: SchemaRegistryServer) -> None:
    jsonschema: Any = pytest.importorskip("jsonschema")
    everything = Types.ROW_NAMED(
        ["a", "b", "c", "d", "e", "f", "g"],
        [
            Types.BIG_DEC(),
            Types.BOOLEAN(),
            Types.MAP(Types.STRING(), Types.DOUBLE()),
            Types.TUPLE([Types.LONG(), Types.STRING()]),
            Types.SQL_TIMESTAMP(),
            Types.PRIMITIVE_ARRAY(Types.BYTE()),
            Types.ROW_NAMED(["h"], [Types.INSTANT()]),
        ],
    )
    write = ConfluentRegistryJsonSerializationSchema.for_type_info("s", everything, registry.url)
    message = write.serialize(Row(None, True, {"x": 1.5}, (1, "y"), None, b"z", Row(None)))
    schema = json.loads(registry.find("/schemas/ids/1")[1]["schema"])
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(json.loads(message[5:]), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"b": "no"}, schema)


def test_schemas_travel_to_tasks(registry: SchemaRegistryServer) -> None:
    schema = avro(NAME, AGE)
    write = ConfluentRegistryAvroSerializationSchema.for_generic("p", schema, registry.url)
    read = ConfluentRegistryAvroDeserializationSchema.for_generic(schema, registry.url)
    restored = pickle.loads(pickle.dumps(read))
    message = pickle.loads(pickle.dumps(write)).serialize({"name": "ada"})
    assert restored.deserialize(message) == {"name": "ada", "age": None}
    assert restored.get_produced_type() == read.get_produced_type()
    json_schemas = (
        ConfluentRegistryJsonSerializationSchema.for_type_info("j", PERSON, registry.url),
        ConfluentRegistryJsonDeserializationSchema.for_type_info(PERSON, registry.url),
    )
    to_json, from_json = pickle.loads(pickle.dumps(json_schemas))
    row = Row(name="ada", age=36, tags=[])
    assert from_json.deserialize(to_json.serialize(row)) == row


def test_a_password() -> None:
    with schema_registry("ann:secret") as registry:
        schema = avro(NAME)
        make = ConfluentRegistryAvroSerializationSchema.for_generic
        right = {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "ann:secret"}
        assert make("p", schema, registry.url, right).serialize({"name": "a"})
        for configs in (None, {"basic.auth.user.info": "ann:wrong"}):
            with pytest.raises(SchemaRegistryError, match=r"Unauthorized.*basic\.auth\.user\.info"):
                make("p", schema, registry.url, configs).serialize({"name": "a"})


def test_errors_name_the_registry_and_the_cause(registry: SchemaRegistryServer) -> None:
    read = ConfluentRegistryAvroDeserializationSchema.for_generic(avro(NAME), registry.url)
    with pytest.raises(
        SchemaRegistryError, match=f"{registry.url} was asked for schema 9.*not fou"
    ):
        read.deserialize(b"\0\0\0\0\x09x")
    with pytest.raises(ValueError, match="does not begin with the number of a schema"):
        read.deserialize(b'{"name": "ada"}')
    make = ConfluentRegistryAvroSerializationSchema.for_generic
    message = make("p", avro(NAME), registry.url).serialize({"name": "a"})
    with pytest.raises(ValueError, match="is not an Avro record"):
        read.deserialize(message[:5])
    with pytest.raises(SchemaRegistryError, match=r"given a schema of p.*Incompatible"):
        make("p", avro(NAME, CITY), registry.url).serialize({"name": "a", "city": "b"})
    json_write = ConfluentRegistryJsonSerializationSchema.for_type_info("j", PERSON, registry.url)
    with pytest.raises(ValueError, match="is a schema of JSON, not of AVRO"):
        read.deserialize(json_write.serialize(Row("a", 1, [])))
    with pytest.raises(ConfigurationError, match=r"basic\.auth\.user\.name"):
        make("p", avro(NAME), registry.url, {"basic.auth.user.name": "x"})
    with pytest.raises(SchemaRegistryError, match="refused"):
        make("p", avro(NAME), "http://127.0.0.1:1").serialize({"name": "a"})


def test_a_job(registry: SchemaRegistryServer) -> None:
    schema = avro(NAME, AGE)
    write = ConfluentRegistryAvroSerializationSchema.for_generic("p", schema, registry.url)
    read = ConfluentRegistryAvroDeserializationSchema.for_generic(schema, registry.url)
    harness = JobHarness(
        lambda env: (
            env.from_collection([Row(name="ada", age=36)])
            .map(write.serialize)
            .map(read.deserialize)
        )
    )
    harness.run()
    assert harness.collected == [{"name": "ada", "age": 36}]
