"""DynamicKafkaSource: streams of topics in one or more Kafka clusters, which may move."""
