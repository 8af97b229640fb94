"""RMQConnectionConfig, and errors of programs that cannot work, without a server."""

from __future__ import annotations

import pickle

import pytest

from firesteel.common.serialization import SimpleStringSchema
from firesteel.connectors.rabbitmq.connection_config import RMQClient, RMQConnectionError
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSource
from firesteel.errors import FiresteelError, InvalidProgramError
from firesteel.testing import JobHarness


def unreachable() -> RMQConnectionConfig:
    return (
        RMQConnectionConfig.Builder()
        .set_host("127.0.0.1")
        .set_port(1)
        .set_virtual_host("/")
        .set_user_name("guest")
        .set_password("guest")
        .set_automatic_recovery(False)
        .set_connection_timeout(1000)
        .build()
    )


def test_settings_reach_the_client() -> None:
    builder = RMQConnectionConfig.Builder().set_uri("amqp://ann:a%2Fb@rabbit:1234/shop")
    builder.set_requested_heartbeat(7).set_requested_frame_max(8192).set_requested_channel_max(3)
    config = builder.set_connection_timeout(2500).set_prefetch_count(9).build()
    parameters = RMQClient(config).parameters()
    assert (parameters.host, parameters.port, parameters.virtual_host) == ("rabbit", 1234, "shop")
    assert (parameters.credentials.username, parameters.credentials.password) == ("ann", "a/b")
    assert (parameters.heartbeat, parameters.frame_max, parameters.channel_max) == (7, 8192, 3)
    assert parameters.socket_timeout == 2.5
    assert RMQClient(config).prefetch_count == 9
    assert repr(config) == "RMQConnectionConfig(ann@rabbit:1234/shop)"
    assert pickle.loads(pickle.dumps(config)).get_uri() == config.get_uri()


def test_missing_settings_are_named() -> None:
    with pytest.raises(InvalidProgramError, match="set_virtual_host was not called"):
        RMQConnectionConfig.Builder().set_host("rabbit").set_port(5672).build()
    with pytest.raises(TypeError, match="set_host expects a value"):
        RMQConnectionConfig.Builder().set_host(None)  # type: ignore[arg-type]


def test_a_server_that_does_not_answer() -> None:
    """Errors name the address and the settings, and not the password."""
    with pytest.raises(RMQConnectionError, match=r"127\.0\.0\.1:1 cannot be used.*set_host"):
        RMQClient(unreachable()).connect()
    sink = RMQSink(unreachable(), "queue", SimpleStringSchema())
    with pytest.raises(FiresteelError, match=r"127\.0\.0\.1:1"):
        JobHarness(lambda env: env.from_collection(["a"]).add_sink(sink)).run()
    source = RMQSource(unreachable(), "queue", False, SimpleStringSchema())
    with pytest.raises(FiresteelError, match=r"127\.0\.0\.1:1"):
        JobHarness(lambda env: env.add_source(source)).run()


def test_only_sources_of_functions_can_be_added() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    source = RMQSource(unreachable(), "queue", True, SimpleStringSchema())
    stream = env.add_source(source, "orders")
    assert stream.get_name() == "orders"
