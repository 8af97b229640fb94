"""The environment of a program, under PyFlink's import path."""

from firesteel.datastream.stream_execution_environment.environment import (
    StreamExecutionEnvironment,
)

__all__ = ["StreamExecutionEnvironment"]
