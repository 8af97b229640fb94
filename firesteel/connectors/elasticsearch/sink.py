"""ElasticsearchSink and its builders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self
from urllib.parse import urlsplit

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.base import DeliveryGuarantee, Sink, SinkWriter, WriterContext
from firesteel.connectors.elasticsearch.emitter import ActionEncoder, ElasticsearchEmitter
from firesteel.connectors.elasticsearch.settings import (
    BulkSettings,
    ConnectionSettings,
    FlushBackoffType,
)
from firesteel.errors import InvalidProgramError, NeverSupportedError, shorten

__all__ = ["Elasticsearch6SinkBuilder", "Elasticsearch7SinkBuilder", "ElasticsearchSink"]


class ElasticsearchSink(Sink):
    """Writes each record as a document of Elasticsearch, at least once. Create it with a builder.

    With ``DeliveryGuarantee.AT_LEAST_ONCE``, the default, Elasticsearch has confirmed all documents
    of an epoch before the next checkpoint can be complete. With ``NONE``, documents that wait for a
    full request are lost in a failure.

    >>> from firesteel.datastream.connectors.elasticsearch import (
    ...     Elasticsearch7SinkBuilder,
    ...     ElasticsearchEmitter,
    ... )
    >>> sink = (
    ...     Elasticsearch7SinkBuilder()
    ...     .set_hosts(["localhost:9200"])
    ...     .set_emitter(ElasticsearchEmitter.static_index("totals", "user"))
    ...     .build()
    ... )
    >>> sink
    ElasticsearchSink(http://localhost:9200, AT_LEAST_ONCE)
    >>> totals = Types.ROW_NAMED(["user", "total"], [Types.STRING(), Types.INT()])
    >>> _ = env.from_collection([("ann", 3)], totals).sink_to(sink)
    """

    def __init__(
        self,
        connection: ConnectionSettings,
        bulk: BulkSettings,
        emitter: ElasticsearchEmitter,
        guarantee: DeliveryGuarantee,
        type_info: TypeInformation | None = None,
    ) -> None:
        """Create a sink. Programs use a builder.

        Args:
            connection: The servers and the user.
            bulk: The size of requests, and their repetitions.
            emitter: Makes documents of records.
            guarantee: The delivery guarantee.
            type_info: The type of the stream.
        """
        self._connection = connection
        self._bulk = bulk
        self._emitter = emitter
        self._guarantee = guarantee
        self._type_info = type_info

    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter:
        from firesteel.connectors.elasticsearch.client import BulkClient
        from firesteel.connectors.elasticsearch.writer import DocumentWriter

        return DocumentWriter(
            ActionEncoder(self._emitter, self._type_info),
            BulkClient(self._connection, context.subtask_index),
            self._bulk,
            flushes=self._guarantee is DeliveryGuarantee.AT_LEAST_ONCE,
        )

    def with_input_type(self, type_info: Any) -> ElasticsearchSink:
        # Rows that lack a field of the emitter are an error of the program.
        ActionEncoder(self._emitter, type_info)
        return ElasticsearchSink(
            self._connection, self._bulk, self._emitter, self._guarantee, type_info
        )

    def __repr__(self) -> str:
        return f"ElasticsearchSink({', '.join(self._connection.hosts)}, {self._guarantee.name})"


class _SinkBuilder:
    """Base of the builders."""

    _requires_types = False

    def __init__(self) -> None:
        self._emitter: ElasticsearchEmitter | None = None
        self._guarantee = DeliveryGuarantee.AT_LEAST_ONCE
        self._bulk = BulkSettings()
        self._connection = ConnectionSettings()

    def set_emitter(self, emitter: ElasticsearchEmitter) -> Self:
        """Set the emitter, which makes documents of records.

        Args:
            emitter: ``ElasticsearchEmitter.static_index`` or ``dynamic_index`` create it.
        """
        if not isinstance(emitter, ElasticsearchEmitter):
            raise TypeError(
                f"set_emitter expects ElasticsearchEmitter.static_index(...) or "
                f"ElasticsearchEmitter.dynamic_index(...), got {shorten(emitter)}"
            )
        self._emitter = emitter
        return self

    def set_hosts(self, hosts: str | list[str]) -> Self:
        """Set the servers. The sink uses the next one if a server does not answer.

        Args:
            hosts: Addresses such as ``localhost:9200`` or ``https://search.example.com:443``.
        """
        found = [hosts] if isinstance(hosts, str) else list(hosts)
        if not found:
            raise ValueError("set_hosts expects at least one server")
        self._connection = replace(self._connection, hosts=tuple(map(_host, found)))
        return self

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> Self:
        """Set the delivery guarantee.

        Args:
            delivery_guarantee: AT_LEAST_ONCE, the default, or NONE.

        Raises:
            InvalidProgramError: EXACTLY_ONCE, which Elasticsearch does not offer.

        >>> from firesteel.datastream.connectors.base import DeliveryGuarantee
        >>> from firesteel.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder
        >>> builder = Elasticsearch7SinkBuilder().set_delivery_guarantee(DeliveryGuarantee.NONE)
        """
        if delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            raise InvalidProgramError(
                "Elasticsearch has no transactions, so its sink does not write EXACTLY_ONCE. With "
                "AT_LEAST_ONCE and a key field in the emitter, a repeated record writes the same "
                "document again."
            )
        self._guarantee = DeliveryGuarantee(delivery_guarantee)
        return self

    def set_bulk_flush_max_actions(self, num_max_actions: int) -> Self:
        """Set the number of actions after which a request is sent.

        Args:
            num_max_actions: The number, or -1 for no limit. The default is 1000.

        >>> from firesteel.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder
        >>> builder = Elasticsearch7SinkBuilder().set_bulk_flush_max_actions(200)
        """
        limit = _limit("set_bulk_flush_max_actions", num_max_actions, 1)
        self._bulk = replace(self._bulk, max_actions=limit)
        return self

    def set_bulk_flush_max_size_mb(self, max_size_mb: int) -> Self:
        """Set the size of actions after which a request is sent.

        Args:
            max_size_mb: The size in megabytes, or -1 for no limit. The default is 5.

        >>> from firesteel.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder
        >>> builder = Elasticsearch7SinkBuilder().set_bulk_flush_max_size_mb(1)
        """
        limit = _limit("set_bulk_flush_max_size_mb", max_size_mb, 1)
        self._bulk = replace(self._bulk, max_megabytes=limit)
        return self

    def set_bulk_flush_interval(self, interval_millis: int) -> Self:
        """Set the longest time that an action waits.

        Args:
            interval_millis: Milliseconds, or -1, the default, for no limit. With AT_LEAST_ONCE,
                actions are sent at the end of each epoch in any case.

        >>> from firesteel.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder
        >>> builder = Elasticsearch7SinkBuilder().set_bulk_flush_interval(500)
        """
        limit = _limit("set_bulk_flush_interval", interval_millis, 0)
        self._bulk = replace(self._bulk, interval_millis=limit)
        return self

    def set_bulk_flush_backoff_strategy(
        self, flush_backoff_type: FlushBackoffType, max_retries: int, delay_millis: int
    ) -> Self:
        """Repeat requests if the servers are overloaded, or do not answer.

        Without this call, such a failure fails the job, and its restart strategy applies.

        Args:
            flush_backoff_type: CONSTANT or EXPONENTIAL.
            max_retries: The number of further attempts.
            delay_millis: The time before the first of them.

        >>> from firesteel.datastream.connectors.elasticsearch import (
        ...     Elasticsearch7SinkBuilder,
        ...     FlushBackoffType,
        ... )
        >>> builder = Elasticsearch7SinkBuilder()
        >>> builder = builder.set_bulk_flush_backoff_strategy(FlushBackoffType.EXPONENTIAL, 5, 100)
        """
        method = "set_bulk_flush_backoff_strategy"
        backoff = FlushBackoffType(flush_backoff_type)
        if backoff is FlushBackoffType.NONE:
            raise ValueError(f"{method} expects CONSTANT or EXPONENTIAL. NONE is the default.")
        self._bulk = replace(
            self._bulk,
            backoff=backoff,
            retries=_at_least(1, method, max_retries),
            delay_millis=_at_least(0, method, delay_millis),
        )
        return self

    def set_connection_username(self, username: str) -> Self:
        """Set the user.

        Args:
            username: The name of the user.

        >>> from firesteel.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder
        >>> builder = Elasticsearch7SinkBuilder().set_connection_username("ann")
        """
        self._connection = replace(self._connection, user_name=username)
        return self

    def set_connection_password(self, password: str) -> Self:
        """Set the password.

        Args:
            password: The password.

        >>> from firesteel.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder
        >>> builder = Elasticsearch7SinkBuilder().set_connection_username("ann")
        >>> builder = builder.set_connection_password("secret")
        """
        self._connection = replace(self._connection, password=password)
        return self

    def set_connection_path_prefix(self, prefix: str) -> Self:
        """Set the first part of the path of each request, for servers that a proxy hides.

        Args:
            prefix: A path such as ``/search``.

        >>> from firesteel.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder
        >>> builder = Elasticsearch7SinkBuilder().set_connection_path_prefix("/search")
        """
        path = prefix.strip("/")
        self._connection = replace(self._connection, path_prefix=f"/{path}" if path else "")
        return self

    def set_connection_request_timeout(self, timeout: int) -> Self:
        """Set the time to wait for a free connection. Each writer has its own, and never waits.

        Args:
            timeout: Milliseconds.

        >>> from firesteel.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder
        >>> builder = Elasticsearch7SinkBuilder().set_connection_request_timeout(1000)
        """
        _at_least(0, "set_connection_request_timeout", timeout)
        return self

    def set_connection_timeout(self, timeout: int) -> Self:
        """Set the time to wait until a server accepts a connection.

        Args:
            timeout: Milliseconds, or 0 for no limit. The default is 1000.

        >>> from firesteel.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder
        >>> builder = Elasticsearch7SinkBuilder().set_connection_timeout(5000)
        """
        millis = _at_least(0, "set_connection_timeout", timeout)
        self._connection = replace(self._connection, connect_millis=millis)
        return self

    def set_socket_timeout(self, timeout: int) -> Self:
        """Set the time to wait for an answer.

        Args:
            timeout: Milliseconds, or 0 for no limit. The default is 30,000.

        >>> from firesteel.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder
        >>> builder = Elasticsearch7SinkBuilder().set_socket_timeout(60_000)
        """
        millis = _at_least(0, "set_socket_timeout", timeout)
        self._connection = replace(self._connection, socket_millis=millis)
        return self

    def build(self) -> ElasticsearchSink:
        """Create the sink.

        Raises:
            InvalidProgramError: The hosts or the emitter are missing, or settings contradict each
                other.
        """
        builder, connection = type(self).__name__, self._connection
        if not connection.hosts:
            raise InvalidProgramError(f"{builder}: set_hosts was not called")
        if self._emitter is None:
            raise InvalidProgramError(f"{builder}: set_emitter was not called")
        if (connection.user_name is None) != (connection.password is None):
            raise InvalidProgramError(
                f"{builder}: set_connection_username and set_connection_password belong together"
            )
        if self._requires_types and self._emitter.doc_type is None:
            raise InvalidProgramError(
                f"{builder}: Elasticsearch 6 needs a type of documents. Pass doc_type to the "
                "emitter."
            )
        return ElasticsearchSink(connection, self._bulk, self._emitter, self._guarantee)

    def get_http_host_class(self) -> Any:
        """Raise an error: the class is one of Flink's JVM.

        Raises:
            NeverSupportedError: Always.

        >>> from firesteel.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder
        >>> Elasticsearch7SinkBuilder().get_http_host_class()
        Traceback (most recent call last):
        firesteel.errors.NeverSupportedError: ...set_hosts takes addresses as texts...
        """
        raise NeverSupportedError(
            f"{type(self).__name__}.get_http_host_class", "set_hosts takes addresses as texts"
        )


class Elasticsearch6SinkBuilder(_SinkBuilder):
    """Builds an ElasticsearchSink for Elasticsearch 6. Hosts and an emitter are required.

    >>> from firesteel.datastream.connectors.elasticsearch import (
    ...     Elasticsearch6SinkBuilder,
    ...     ElasticsearchEmitter,
    ... )
    >>> builder = Elasticsearch6SinkBuilder().set_hosts("localhost:9200")
    >>> builder.set_emitter(ElasticsearchEmitter.static_index("words", "word", "_doc")).build()
    ElasticsearchSink(http://localhost:9200, AT_LEAST_ONCE)
    """

    _requires_types = True


class Elasticsearch7SinkBuilder(_SinkBuilder):
    """Builds an ElasticsearchSink for Elasticsearch 7 and 8. Hosts and an emitter are required.

    >>> from firesteel.datastream.connectors.elasticsearch import (
    ...     Elasticsearch7SinkBuilder,
    ...     ElasticsearchEmitter,
    ... )
    >>> builder = Elasticsearch7SinkBuilder().set_hosts(["one:9200", "https://two:9200"])
    >>> builder.set_emitter(ElasticsearchEmitter.dynamic_index("language", "word")).build()
    ElasticsearchSink(http://one:9200, https://two:9200, AT_LEAST_ONCE)
    """


def _host(text: str) -> str:
    """Return an address with its scheme."""
    if not isinstance(text, str):
        raise TypeError(f"set_hosts expects texts such as 'localhost:9200', got {shorten(text)}")
    url = urlsplit(text if "://" in text else f"http://{text}")
    try:
        is_address = url.scheme in ("http", "https") and url.hostname and url.port != 0
    except ValueError:
        is_address = False
    if not is_address or url.username or url.path not in ("", "/") or url.query:
        raise ValueError(
            f"set_hosts expects addresses such as 'localhost:9200' or 'https://search:443', got "
            f"{text!r}. A path belongs into set_connection_path_prefix, a user into "
            "set_connection_username."
        )
    return f"{url.scheme}://{url.netloc}"


def _limit(method: str, value: int, least: int) -> int:
    return value if value == -1 else _at_least(least, method, value)


def _at_least(least: int, method: str, value: int) -> int:
    if value < least:
        raise ValueError(f"{method} expects at least {least}, got {value}")
    return value
