"""The REST server of a driver: Flink's REST API v1, and additions that are marked as such."""
