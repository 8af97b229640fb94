"""RMQSource and RMQSink, under PyFlink's import path."""

from firesteel.connectors.rabbitmq.connection_config import RMQConnectionConfig
from firesteel.connectors.rabbitmq.sink import RMQSink
from firesteel.connectors.rabbitmq.source import RMQSource

__all__ = ["RMQConnectionConfig", "RMQSink", "RMQSource"]
