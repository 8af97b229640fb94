"""Reads keyed state out of a savepoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.checkpoint.savepoint_reader import open_savepoint, open_state
from firesteel.checkpoint.settings import file_system_options

if TYPE_CHECKING:
    import pyarrow as pa

    from firesteel.datastream import StreamExecutionEnvironment

__all__ = ["SavepointReader"]


class SavepointReader:
    """Gives keyed state as tables with the columns ``key`` and ``value``.

    A list state's value is an array, a map state's a map; rows and tuples are structs. State of
    windows and timers has a column ``namespace``, too. Columns have the declared types; without them
    what the values look like, or else their text.

    Objects of the job's own classes are refused unless ``allow_pickle``: rebuilding them runs their
    code.
    """

    def __init__(self, environment: StreamExecutionEnvironment, path: str) -> None:
        self._environment = environment
        self._path = path
        self._options = file_system_options(environment.get_configuration())

    @staticmethod
    def read(environment: StreamExecutionEnvironment, path: str) -> SavepointReader:
        """The savepoint in a directory; the environment knows how to reach it, and Spark."""
        reader = SavepointReader(environment, path)
        open_savepoint(path, reader._options)
        return reader

    def read_keyed_state(self, operator: str, state: str, *, allow_pickle: bool = False) -> Any:
        """A Spark DataFrame of one state. ``operator`` is a uid, or else an operator id or a name.

        Where the types of keys and values are declared, Spark reads the files in parallel, when the
        DataFrame is used; otherwise this process reads them, now.
        """
        from firesteel.spark.savepoint_frames import read_frame

        session = self._environment.get_spark_session()
        return read_frame(session, self._open(operator, state, allow_pickle=allow_pickle))

    def read_keyed_state_as_arrow(
        self, operator: str, state: str, *, allow_pickle: bool = False
    ) -> pa.Table:
        """The same as a ``pyarrow.Table``, without Spark."""
        found = self._open(operator, state, allow_pickle=allow_pickle)
        return found.arrow_table(found.entries())

    def _open(self, operator: str, state: str, *, allow_pickle: bool) -> Any:
        return open_state(self._path, operator, state, self._options, allow_pickle=allow_pickle)
