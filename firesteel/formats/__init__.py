"""Formats of files and messages: JSON, CSV, Avro, Parquet and ORC."""
