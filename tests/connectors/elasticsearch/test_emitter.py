"""ElasticsearchEmitter: records as actions of a bulk request."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from firesteel.common import Row, RowKind, Types
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.elasticsearch.emitter import ActionEncoder
from firesteel.datastream.connectors.elasticsearch import ElasticsearchEmitter
from firesteel.errors import InvalidProgramError

TOTALS = Types.ROW_NAMED(["user", "total"], [Types.STRING(), Types.INT()])


def lines(
    emitter: ElasticsearchEmitter, *records: Any, type_info: TypeInformation | None = None
) -> list[Any]:
    actions = ActionEncoder(emitter, type_info).actions(iter(records))
    return [json.loads(line) for action in actions for line in action.text.splitlines()]


def test_documents_without_a_key_are_new() -> None:
    assert lines(ElasticsearchEmitter.static_index("words"), {"a": 1}, {"a": None}) == [
        {"index": {"_index": "words"}},
        {"a": 1},
        {"index": {"_index": "words"}},
        {"a": None},
    ]


def test_documents_with_a_key_are_updated_or_created() -> None:
    emitter = ElasticsearchEmitter.static_index("words", "id", "_doc")
    assert lines(emitter, {"id": 7, "a": 1}) == [
        {"update": {"_index": "words", "_type": "_doc", "_id": "7"}},
        {"doc": {"id": 7, "a": 1}, "doc_as_upsert": True},
    ]


def test_a_field_may_name_the_index() -> None:
    emitter = ElasticsearchEmitter.dynamic_index("country", "id")
    found = lines(emitter, {"country": "at", "id": "x"}, {"country": "ch", "id": True})
    assert [line["update"] for line in found[::2]] == [
        {"_index": "at", "_id": "x"},
        {"_index": "ch", "_id": "true"},
    ]


@pytest.mark.parametrize(
    "record", [Row("ann", 3), Row(user="ann", total=3), ("ann", 3)], ids=["plain", "named", "tuple"]
)
def test_rows_have_the_names_of_their_type(record: Any) -> None:
    found = lines(ElasticsearchEmitter.static_index("totals", "user"), record, type_info=TOTALS)
    assert found == [
        {"update": {"_index": "totals", "_id": "ann"}},
        {"doc": {"user": "ann", "total": 3}, "doc_as_upsert": True},
    ]


def test_values_that_json_lacks() -> None:
    row = Types.ROW_NAMED(["at", "price"], [Types.SQL_DATE(), Types.BIG_DEC()])
    emitter = ElasticsearchEmitter.static_index("prices")
    record = (dt.date(2024, 3, 9), Decimal("1.10"))
    text = ActionEncoder(emitter, row).actions(iter([record]))[0].text
    assert text == b'{"index":{"_index":"prices"}}\n{"at":"2024-03-09","price":1.10}\n'


def test_changes_delete_documents() -> None:
    emitter = ElasticsearchEmitter.static_index("totals", "user")
    changes = [
        Row.of_kind(RowKind.INSERT, "ann", 1),
        Row.of_kind(RowKind.UPDATE_BEFORE, "ann", 1),
        Row.of_kind(RowKind.UPDATE_AFTER, "ann", 2),
        Row.of_kind(RowKind.UPDATE_BEFORE, "bob", 5),
        Row.of_kind(RowKind.UPDATE_AFTER, "cid", 5),
        Row.of_kind(RowKind.DELETE, "dan", 1),
        Row.of_kind(RowKind.UPDATE_BEFORE, "eve", 1),
    ]
    found = ActionEncoder(emitter, TOTALS).actions(iter(changes))
    kinds = [
        (next(iter(json.loads(action.text.splitlines()[0]))), action.document_id)
        for action in found
    ]
    # The document of ann is there all the time.
    assert kinds == [
        ("update", "ann"),
        ("update", "ann"),
        ("delete", "bob"),
        ("update", "cid"),
        ("delete", "dan"),
        ("delete", "eve"),
    ]


def test_a_deletion_needs_a_key() -> None:
    encoder = ActionEncoder(ElasticsearchEmitter.static_index("totals"), TOTALS)
    with pytest.raises(ValueError, match="key_field"):
        encoder.actions(iter([Row.of_kind(RowKind.DELETE, "ann", 1)]))


@pytest.mark.parametrize("record", [{"a": 1}, {"id": None}])
def test_a_missing_key_is_named(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="'id', the id of a document, has no value"):
        lines(ElasticsearchEmitter.static_index("words", "id"), record)


def test_rows_without_the_fields_of_the_emitter() -> None:
    with pytest.raises(InvalidProgramError, match="'word' of the emitter is not among"):
        ActionEncoder(ElasticsearchEmitter.static_index("words", "word"), TOTALS)


@pytest.mark.parametrize("record", ["text", 7, ("ann", 3)])
@pytest.mark.parametrize("key", [None, "id"])
def test_records_that_are_no_documents(record: Any, key: str | None) -> None:
    with pytest.raises(TypeError, match="expects dicts, or rows with named fields"):
        lines(ElasticsearchEmitter.static_index("words", key), record)


def test_an_index_is_a_name() -> None:
    with pytest.raises(TypeError, match="static_index expects a name"):
        ElasticsearchEmitter.static_index("")
