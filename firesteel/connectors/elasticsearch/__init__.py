"""Elasticsearch: a sink of documents."""
