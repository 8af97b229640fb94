"""RabbitMQ: a source and a sink of queues."""
