"""ElasticsearchEmitter: makes actions of a bulk request out of records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from firesteel.common.typeinfo import MapTypeInfo, RowTypeInfo, TypeInformation
from firesteel.common.types import Row, RowKind, field_names_of
from firesteel.errors import InvalidProgramError, shorten
from firesteel.formats.json import JsonEncoder

__all__ = ["Action", "ActionEncoder", "ElasticsearchEmitter"]

_DELETIONS = (RowKind.UPDATE_BEFORE, RowKind.DELETE)


@dataclass(slots=True)
class Action:
    """A line or two of a bulk request."""

    text: bytes
    index: str
    #: None if Elasticsearch chooses the id.
    document_id: str | None

    @property
    def target(self) -> tuple[str, str | None]:
        """The document that the action changes."""
        return self.index, self.document_id


@dataclass(frozen=True, slots=True)
class ElasticsearchEmitter:
    """Makes documents of records. Records are dicts, or rows whose fields have names.

    With ``key_field``, a record updates the document with this id, or creates it. A row of the kind
    DELETE or UPDATE_BEFORE removes the document. Without ``key_field``, each record is a new
    document.

    >>> from firesteel.datastream.connectors.elasticsearch import ElasticsearchEmitter
    >>> ElasticsearchEmitter.static_index("words", "word")
    ElasticsearchEmitter(index='words', index_field=None, key_field='word', doc_type=None)
    """

    index: str | None
    index_field: str | None
    key_field: str | None
    doc_type: str | None

    @staticmethod
    def static_index(
        index: str, key_field: str | None = None, doc_type: str | None = None
    ) -> ElasticsearchEmitter:
        """Return an emitter that writes all records to one index.

        Args:
            index: The name of the index.
            key_field: The field with the id of the document.
            doc_type: The type of the documents. Elasticsearch 6 needs it, and Elasticsearch 8 does
                not accept it.

        >>> from firesteel.datastream.connectors.elasticsearch import ElasticsearchEmitter
        >>> emitter = ElasticsearchEmitter.static_index("orders", "order_id")
        """
        return ElasticsearchEmitter(_name("static_index", index), None, key_field, doc_type)

    @staticmethod
    def dynamic_index(
        index_field: str, key_field: str | None = None, doc_type: str | None = None
    ) -> ElasticsearchEmitter:
        """Return an emitter that writes each record to the index that one of its fields names.

        Args:
            index_field: The field with the name of the index.
            key_field: The field with the id of the document.
            doc_type: The type of the documents. Elasticsearch 6 needs it, and Elasticsearch 8 does
                not accept it.

        >>> from firesteel.datastream.connectors.elasticsearch import ElasticsearchEmitter
        >>> emitter = ElasticsearchEmitter.dynamic_index("country", "order_id")
        """
        return ElasticsearchEmitter(None, _name("dynamic_index", index_field), key_field, doc_type)


def _name(method: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"ElasticsearchEmitter.{method} expects a name, got {shorten(value)}")
    return value


class ActionEncoder:
    """Makes actions of the records of a stream, as an emitter describes them."""

    def __init__(self, emitter: ElasticsearchEmitter, type_info: TypeInformation | None) -> None:
        """Create an encoder.

        Args:
            emitter: The names of the index and of fields.
            type_info: The type of the stream.

        Raises:
            InvalidProgramError: The rows lack a field that the emitter names.
        """
        self._index = emitter.index
        self._index_field = emitter.index_field
        self._key_field = emitter.key_field
        self._metadata = {} if emitter.doc_type is None else {"_type": emitter.doc_type}
        self._names: list[str] | None = None
        if isinstance(type_info, RowTypeInfo):
            self._names = type_info.get_field_names()
            for field in (emitter.index_field, emitter.key_field):
                if field is not None and field not in self._names:
                    raise InvalidProgramError(
                        f"ElasticsearchSink: the field {field!r} of the emitter is not among the "
                        f"fields of the rows, which are {self._names}"
                    )
        typed = type_info if isinstance(type_info, RowTypeInfo | MapTypeInfo) else None
        self._encode = JsonEncoder(typed).encode
        # The first line is the same for all new documents of an index.
        self._creations: dict[str, bytes] = {}

    def actions(self, records: Iterator[Any]) -> list[Action]:
        """Return the actions of records, in their order.

        Args:
            records: An iterator, whose position identifies a record that cannot be encoded.
        """
        found: list[Action] = []
        # A deletion that the next action may make superfluous.
        removed: Action | None = None
        for record in records:
            action = self._action(record)
            if removed is not None:
                if removed.target != action.target:
                    found.append(removed)
                removed = None
            if isinstance(record, Row) and record.get_row_kind() is RowKind.UPDATE_BEFORE:
                removed = action
            else:
                found.append(action)
        if removed is not None:
            found.append(removed)
        return found

    def _action(self, record: Any) -> Action:
        index = self._index
        if index is None:
            assert self._index_field is not None
            index = self._text(record, self._index_field, "name of an index")
        is_deletion = isinstance(record, Row) and record.get_row_kind() in _DELETIONS
        if self._key_field is None:
            if is_deletion:
                raise ValueError(
                    f"The row {shorten(record)} removes a document. Name the field with the id of "
                    "documents: ElasticsearchEmitter.static_index(index, key_field)"
                )
            line = self._creations.get(index)
            if line is None:
                line = self._creations[index] = self._line("index", index, None)
            return Action(line + self._document(record), index, None)
        key = self._text(record, self._key_field, "id of a document")
        if is_deletion:
            return Action(self._line("delete", index, key), index, key)
        document = self._document(record)[:-1]
        text = b'%b{"doc":%b,"doc_as_upsert":true}\n' % (self._line("update", index, key), document)
        return Action(text, index, key)

    def _document(self, record: Any) -> bytes:
        if isinstance(record, dict | Row) or (self._names and isinstance(record, tuple | list)):
            return self._encode(record)
        raise TypeError(
            f"ElasticsearchSink expects dicts, or rows with named fields, got {shorten(record)}"
        )

    def _line(self, kind: str, index: str, key: str | None) -> bytes:
        metadata = {"_index": index, **self._metadata}
        if key is not None:
            metadata["_id"] = key
        return orjson.dumps({kind: metadata}, option=orjson.OPT_APPEND_NEWLINE)

    def _text(self, record: Any, field: str, what: str) -> str:
        value = self._field(record, field)
        if value is None:
            raise ValueError(f"The field {field!r}, the {what}, has no value in {shorten(record)}")
        if isinstance(value, bool):
            return str(value).lower()
        return str(value)

    def _field(self, record: Any, field: str) -> Any:
        if isinstance(record, dict):
            return record.get(field)
        names = (field_names_of(record) if isinstance(record, Row) else None) or self._names
        if names is None or not isinstance(record, Row | tuple | list):
            raise TypeError(
                f"ElasticsearchSink expects dicts, or rows with named fields, got {shorten(record)}"
            )
        return record[names.index(field)] if field in names else None
