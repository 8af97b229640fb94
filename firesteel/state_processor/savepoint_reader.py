"""Reads state out of savepoints and retained checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.checkpoint.rules.settings import file_system_options
from firesteel.checkpoint.savepoints.operator_state_tables import operator_state_table
from firesteel.checkpoint.savepoints.savepoint_reader import find_operator, open_state
from firesteel.checkpoint.storage.metadata_file import open_checkpoint
from firesteel.state.operator_state import Redistribution

if TYPE_CHECKING:
    import pyarrow as pa

    from firesteel.datastream import StreamExecutionEnvironment

__all__ = ["SavepointReader"]


class SavepointReader:
    """Gives state as Spark DataFrames; methods that end in ``_as_arrow`` do without Spark.

    Rows and tuples are structs. Columns have the declared types; without them what the values look
    like, or else their text. An operator is named by its uid, or else by its operator id or name.

    Objects of the job's own classes are refused unless ``allow_pickle``: rebuilding them runs their
    code.
    """

    def __init__(self, environment: StreamExecutionEnvironment, path: str) -> None:
        self._environment = environment
        self._path = path
        self._options = file_system_options(environment._configuration)
        _, self._metadata = open_checkpoint(path, self._options)

    @staticmethod
    def read(environment: StreamExecutionEnvironment, path: str) -> SavepointReader:
        """The savepoint or checkpoint in a directory. The environment knows how to reach it, and Spark."""
        return SavepointReader(environment, path)

    def read_keyed_state(self, operator: str, state: str, *, allow_pickle: bool = False) -> Any:
        """Columns ``key`` and ``value``; a list state's value is an array, a map state's a map.

        State of windows and timers has a column ``namespace``, too. Where the types of keys and
        values are declared, Spark reads the files in parallel, when the DataFrame is used; otherwise
        this process reads them, now.
        """
        from firesteel.spark.savepoint_frames import read_frame

        session = self._environment.get_spark_session()
        return read_frame(session, self._open(operator, state, allow_pickle=allow_pickle))

    def read_keyed_state_as_arrow(
        self, operator: str, state: str, *, allow_pickle: bool = False
    ) -> pa.Table:
        found = self._open(operator, state, allow_pickle=allow_pickle)
        return found.arrow_table(found.entries())

    def read_list_state(self, operator: str, state: str, *, allow_pickle: bool = False) -> Any:
        """Column ``value``: the elements of all subtasks."""
        return self._frame(
            self.read_list_state_as_arrow(operator, state, allow_pickle=allow_pickle)
        )

    def read_list_state_as_arrow(
        self, operator: str, state: str, *, allow_pickle: bool = False
    ) -> pa.Table:
        return self._operator_state(operator, state, Redistribution.SPLIT, allow_pickle)

    def read_union_state(self, operator: str, state: str, *, allow_pickle: bool = False) -> Any:
        """Column ``value``: the elements of all subtasks."""
        return self._frame(
            self.read_union_state_as_arrow(operator, state, allow_pickle=allow_pickle)
        )

    def read_union_state_as_arrow(
        self, operator: str, state: str, *, allow_pickle: bool = False
    ) -> pa.Table:
        return self._operator_state(operator, state, Redistribution.UNION, allow_pickle)

    def read_broadcast_state(self, operator: str, state: str, *, allow_pickle: bool = False) -> Any:
        """Columns ``key`` and ``value``."""
        return self._frame(
            self.read_broadcast_state_as_arrow(operator, state, allow_pickle=allow_pickle)
        )

    def read_broadcast_state_as_arrow(
        self, operator: str, state: str, *, allow_pickle: bool = False
    ) -> pa.Table:
        return self._operator_state(operator, state, Redistribution.BROADCAST, allow_pickle)

    def _open(self, operator: str, state: str, *, allow_pickle: bool) -> Any:
        return open_state(self._path, operator, state, self._options, allow_pickle=allow_pickle)

    def _operator_state(
        self, operator: str, state: str, mode: Redistribution, allow_pickle: bool
    ) -> pa.Table:
        found = find_operator(self._metadata, operator)
        return operator_state_table(found, state, mode, allow_pickle=allow_pickle)

    def _frame(self, table: pa.Table) -> Any:
        return self._environment.get_spark_session().createDataFrame(table)
