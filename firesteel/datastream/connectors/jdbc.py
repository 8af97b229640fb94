"""JdbcSink and JdbcSource, under PyFlink's import path."""

from firesteel.connectors.jdbc.options import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
)
from firesteel.connectors.jdbc.sink import JdbcSink
from firesteel.connectors.jdbc.source import JdbcSource, JdbcSourceBuilder

__all__ = [
    "JdbcConnectionOptions",
    "JdbcExactlyOnceOptions",
    "JdbcExecutionOptions",
    "JdbcSink",
    "JdbcSource",
    "JdbcSourceBuilder",
]
