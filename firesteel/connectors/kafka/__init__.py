"""The Kafka connector."""
