"""Reading, changing and creating the state of savepoints, as DataFrames and Arrow tables.

This room corresponds to Flink's State Processor API.
"""

from firesteel.state_processor.savepoint_reader import SavepointReader
from firesteel.state_processor.savepoint_writer import SavepointWriter

__all__ = ["SavepointReader", "SavepointWriter"]
