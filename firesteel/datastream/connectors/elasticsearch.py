"""ElasticsearchSink with its builders and emitter, under PyFlink's import path."""

from firesteel.connectors.elasticsearch.emitter import ElasticsearchEmitter
from firesteel.connectors.elasticsearch.settings import FlushBackoffType
from firesteel.connectors.elasticsearch.sink import (
    Elasticsearch6SinkBuilder,
    Elasticsearch7SinkBuilder,
    ElasticsearchSink,
)

__all__ = [
    "Elasticsearch6SinkBuilder",
    "Elasticsearch7SinkBuilder",
    "ElasticsearchEmitter",
    "ElasticsearchSink",
    "FlushBackoffType",
]
