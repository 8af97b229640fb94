"""State of savepoints as DataFrames and Arrow tables: read, change and create it.

This is Flink's State Processor API for Spark.
"""

from firesteel.state_processor.savepoint_reader import SavepointReader
from firesteel.state_processor.savepoint_writer import SavepointWriter

__all__ = ["SavepointReader", "SavepointWriter"]
