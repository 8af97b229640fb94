"""RMQConnectionConfig and its builder: the address of a RabbitMQ, and the settings of its client."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any
from urllib.parse import unquote, urlsplit

from firesteel.errors import ConfigurationError, FiresteelError, InvalidProgramError

__all__ = [
    "RMQClient",
    "RMQConnectionConfig",
    "RMQConnectionError",
    "declared_channel",
    "require_client",
]

_PORT = 5672
_MILLIS = 1000


class RMQConnectionError(FiresteelError, ConnectionError):
    """A RabbitMQ does not answer, or does not accept the user."""

    def __init__(self, address: str, reason: str, settings: str) -> None:
        super().__init__(f"RabbitMQ at {address} cannot be used: {reason}. Check {settings}.")
        self.address = address
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Settings:
    host: str | None = None
    port: int | None = None
    virtual_host: str | None = None
    user_name: str | None = None
    password: str | None = None
    uri: str | None = None
    network_recovery_interval: int | None = None
    automatic_recovery: bool | None = None
    topology_recovery: bool | None = None
    connection_timeout: int | None = None
    requested_channel_max: int | None = None
    requested_frame_max: int | None = None
    requested_heartbeat: int | None = None
    prefetch_count: int | None = None


class RMQConnectionConfig:
    """The address of a RabbitMQ, and the settings of its client.

    >>> from firesteel.datastream.connectors.rabbitmq import RMQConnectionConfig
    >>> config = (
    ...     RMQConnectionConfig.Builder()
    ...     .set_host("localhost")
    ...     .set_port(5672)
    ...     .set_virtual_host("/")
    ...     .set_user_name("guest")
    ...     .set_password("guest")
    ...     .build()
    ... )
    >>> config
    RMQConnectionConfig(guest@localhost:5672/)
    >>> config.get_host(), config.get_port(), config.get_virtual_host()
    ('localhost', 5672, '/')
    >>> config.get_user_name(), config.get_password(), config.get_uri()
    ('guest', 'guest', None)
    >>> config.is_automatic_recovery(), config.is_topology_recovery()
    (None, None)
    >>> config.get_connection_timeout(), config.get_network_recovery_interval()
    (None, None)
    >>> config.get_requested_channel_max(), config.get_requested_frame_max()
    (None, None)
    >>> config.get_requested_heartbeat()
    """

    def __init__(self, settings: Any) -> None:
        """Create a config. Programs use ``RMQConnectionConfig.Builder()``."""
        self._settings: _Settings = settings

    def get_host(self) -> str | None:
        """Return the host, or None if there is a URI."""
        return self._settings.host

    def get_port(self) -> int | None:
        """Return the port, or None if there is a URI."""
        return self._settings.port

    def get_virtual_host(self) -> str | None:
        """Return the virtual host, or None if there is a URI."""
        return self._settings.virtual_host

    def get_user_name(self) -> str | None:
        """Return the user, or None if there is a URI."""
        return self._settings.user_name

    def get_password(self) -> str | None:
        """Return the password, or None if there is a URI."""
        return self._settings.password

    def get_uri(self) -> str | None:
        """Return the URI, if there is one."""
        return self._settings.uri

    def get_network_recovery_interval(self) -> int | None:
        """Return the milliseconds between two attempts to connect again."""
        return self._settings.network_recovery_interval

    def is_automatic_recovery(self) -> bool | None:
        """Return False if the source fails when it loses its connection."""
        return self._settings.automatic_recovery

    def is_topology_recovery(self) -> bool | None:
        """Return the setting. A queue is declared again with each connection in any case."""
        return self._settings.topology_recovery

    def get_connection_timeout(self) -> int | None:
        """Return the longest time to connect, in milliseconds."""
        return self._settings.connection_timeout

    def get_requested_channel_max(self) -> int | None:
        """Return the highest number of a channel."""
        return self._settings.requested_channel_max

    def get_requested_frame_max(self) -> int | None:
        """Return the largest frame in bytes."""
        return self._settings.requested_frame_max

    def get_requested_heartbeat(self) -> int | None:
        """Return the seconds between two heartbeats."""
        return self._settings.requested_heartbeat

    def __repr__(self) -> str:
        user, virtual_host = self._settings.user_name, self._settings.virtual_host or ""
        if self._settings.uri is not None:
            parts = urlsplit(self._settings.uri)
            user, virtual_host = unquote(parts.username or ""), unquote(parts.path)
        return f"RMQConnectionConfig({user}@{RMQClient(self).address}{virtual_host})"

    class Builder:
        """Builds an RMQConnectionConfig. A URI, or host, port, virtual host and user are required.

        >>> from firesteel.datastream.connectors.rabbitmq import RMQConnectionConfig
        >>> builder = RMQConnectionConfig.Builder().set_uri("amqp://ann:secret@rabbit:5672/shop")
        >>> builder = builder.set_prefetch_count(500).set_requested_heartbeat(30)
        >>> builder = builder.set_connection_timeout(10_000).set_network_recovery_interval(2000)
        >>> builder = builder.set_automatic_recovery(True).set_topology_recovery_enabled(True)
        >>> builder = builder.set_requested_channel_max(0).set_requested_frame_max(0)
        >>> builder.build()
        RMQConnectionConfig(ann@rabbit:5672/shop)
        >>> RMQConnectionConfig.Builder().set_host("rabbit").build()
        Traceback (most recent call last):
        firesteel.errors.InvalidProgramError: RMQConnectionConfig: set_port was not called
        """

        def __init__(self) -> None:
            self._values: dict[str, Any] = {}

        def set_port(self, port: int) -> RMQConnectionConfig.Builder:
            """Set the port.

            Args:
                port: The number, 5672 as a rule.
            """
            return self._set("port", port)

        def set_host(self, host: str) -> RMQConnectionConfig.Builder:
            """Set the host.

            Args:
                host: The name or the address.
            """
            return self._set("host", host)

        def set_virtual_host(self, vhost: str) -> RMQConnectionConfig.Builder:
            """Set the virtual host.

            Args:
                vhost: The name, ``/`` as a rule.
            """
            return self._set("virtual_host", vhost)

        def set_user_name(self, user_name: str) -> RMQConnectionConfig.Builder:
            """Set the user.

            Args:
                user_name: The name.
            """
            return self._set("user_name", user_name)

        def set_password(self, password: str) -> RMQConnectionConfig.Builder:
            """Set the password.

            Args:
                password: The password.
            """
            return self._set("password", password)

        def set_uri(self, uri: str) -> RMQConnectionConfig.Builder:
            """Set the address as a URI. ``amqps`` encrypts the connection.

            Args:
                uri: ``amqp://user:password@host:port/virtual-host``.
            """
            return self._set("uri", uri)

        def set_topology_recovery_enabled(
            self, topology_recovery_enabled: bool
        ) -> RMQConnectionConfig.Builder:
            """Accepted for PyFlink's sake. A queue is declared again with each connection.

            Args:
                topology_recovery_enabled: The setting.
            """
            return self._set("topology_recovery", topology_recovery_enabled)

        def set_requested_heartbeat(self, requested_heartbeat: int) -> RMQConnectionConfig.Builder:
            """Set the time between two heartbeats.

            Args:
                requested_heartbeat: Seconds. 0 turns heartbeats off.
            """
            return self._set("requested_heartbeat", requested_heartbeat)

        def set_requested_frame_max(self, requested_frame_max: int) -> RMQConnectionConfig.Builder:
            """Set the largest frame.

            Args:
                requested_frame_max: Bytes. 0 is no limit.
            """
            return self._set("requested_frame_max", requested_frame_max)

        def set_requested_channel_max(
            self, requested_channel_max: int
        ) -> RMQConnectionConfig.Builder:
            """Set the highest number of a channel.

            Args:
                requested_channel_max: The number. 0 is no limit.
            """
            return self._set("requested_channel_max", requested_channel_max)

        def set_network_recovery_interval(
            self, network_recovery_interval: int
        ) -> RMQConnectionConfig.Builder:
            """Set the pause before a reader that has lost its connection connects again.

            Args:
                network_recovery_interval: Milliseconds. The default is 5000.
            """
            return self._set("network_recovery_interval", network_recovery_interval)

        def set_connection_timeout(self, connection_timeout: int) -> RMQConnectionConfig.Builder:
            """Set the longest time to connect.

            Args:
                connection_timeout: Milliseconds.
            """
            return self._set("connection_timeout", connection_timeout)

        def set_automatic_recovery(self, automatic_recovery: bool) -> RMQConnectionConfig.Builder:
            """Choose if a reader that has lost its connection connects again.

            Args:
                automatic_recovery: False fails the job instead. The default is True.
            """
            return self._set("automatic_recovery", automatic_recovery)

        def set_prefetch_count(self, prefetch_count: int) -> RMQConnectionConfig.Builder:
            """Set the number of messages that a reader holds without an acknowledgment.

            A reader acknowledges messages when a checkpoint is complete, so this is also the
            largest number of messages per checkpoint.

            Args:
                prefetch_count: The number. The default is no limit.
            """
            return self._set("prefetch_count", prefetch_count)

        def build(self) -> RMQConnectionConfig:
            """Create the config.

            Raises:
                InvalidProgramError: A setting is missing.
            """
            if "uri" not in self._values:
                for name in ("host", "port", "virtual_host", "user_name", "password"):
                    if name not in self._values:
                        raise InvalidProgramError(f"RMQConnectionConfig: set_{name} was not called")
            return RMQConnectionConfig(_Settings(**self._values))

        def _set(self, name: str, value: Any) -> RMQConnectionConfig.Builder:
            if value is None:
                raise TypeError(f"set_{name} expects a value, got None")
            self._values[name] = value
            return self


_settings_of = attrgetter("_settings")


class RMQClient:
    """The settings of a config, as the client needs them."""

    def __init__(self, config: RMQConnectionConfig) -> None:
        self._settings: _Settings = _settings_of(config)

    @property
    def prefetch_count(self) -> int:
        """The number of messages that a reader holds without an acknowledgment. 0 is no limit."""
        return self._settings.prefetch_count or 0

    @property
    def recovery_seconds(self) -> float | None:
        """The pause before a reader connects again, or None if the job fails instead."""
        if self._settings.automatic_recovery is False:
            return None
        interval = self._settings.network_recovery_interval
        return 5.0 if interval is None else interval / _MILLIS

    @property
    def address(self) -> str:
        """The host and the port, without user and password."""
        if self._settings.uri is None:
            return f"{self._settings.host}:{self._settings.port}"
        parts = urlsplit(self._settings.uri)
        return f"{parts.hostname}:{parts.port or _PORT}"

    def connect(self) -> Any:
        """Open a connection of pika."""
        import pika
        from pika import exceptions

        try:
            return pika.BlockingConnection(self.parameters())
        except exceptions.ProbableAuthenticationError as error:
            raise RMQConnectionError(
                self.address,
                "it does not accept the user and the password",
                "set_user_name and set_password, or set_uri",
            ) from error
        except exceptions.ProbableAccessDeniedError as error:
            raise RMQConnectionError(
                self.address,
                "the user may not use the virtual host, or it does not exist",
                "set_virtual_host, or set_uri",
            ) from error
        except (exceptions.AMQPError, OSError) as error:
            reason = str(error) or repr(error)
            raise RMQConnectionError(
                self.address, reason, "set_host and set_port, or set_uri"
            ) from error

    def parameters(self) -> Any:
        """Return the parameters of a connection of pika."""
        import pika

        settings = self._settings
        if settings.uri is not None:
            parameters: Any = pika.URLParameters(settings.uri)
        else:
            parameters = pika.ConnectionParameters(
                settings.host,
                settings.port,
                settings.virtual_host,
                pika.PlainCredentials(settings.user_name, settings.password),
            )
        if settings.connection_timeout is not None:
            parameters.socket_timeout = max(0.001, settings.connection_timeout / _MILLIS)
        if settings.requested_heartbeat is not None:
            parameters.heartbeat = settings.requested_heartbeat
        # 0 is no limit, which pika has by default.
        if settings.requested_frame_max:
            parameters.frame_max = settings.requested_frame_max
        if settings.requested_channel_max:
            parameters.channel_max = settings.requested_channel_max
        return parameters


def require_client(who: str) -> None:
    """Raise an error if the client is not installed.

    Args:
        who: The class that needs it.
    """
    if importlib.util.find_spec("pika") is None:
        raise ConfigurationError(
            f"{who} needs the Python package pika, which is not installed. Install it on every "
            "machine that runs tasks: pip install 'firesteel[rabbitmq]'"
        )


def declared_channel(
    connection: Any, queue: str, address: str, prepare: Callable[[Any], None]
) -> Any:
    """Open a channel with a queue that survives a restart of the server.

    Args:
        connection: The connection of pika.
        queue: The name of the queue. It is created if it does not exist.
        address: The server, for errors.
        prepare: Sets up the channel before its use.
    """
    from pika import exceptions

    channel = connection.channel()
    try:
        channel.queue_declare(queue, durable=True)
        prepare(channel)
    except exceptions.ChannelClosedByBroker as error:
        raise RMQConnectionError(
            address, f"the queue {queue!r}: {error.reply_text}", f"the settings of {queue!r}"
        ) from error
    return channel
