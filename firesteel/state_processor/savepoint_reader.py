"""SavepointReader, which reads state from savepoints and retained checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.checkpoint.savepoints.operator_state_tables import operator_state_table
from firesteel.checkpoint.savepoints.savepoint_reader import find_operator, open_state
from firesteel.checkpoint.storage.metadata_file import open_checkpoint
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.filesystems.settings import file_system_options
from firesteel.stability import public_evolving
from firesteel.state.operator_state import Redistribution

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SavepointReader"]


@public_evolving
class SavepointReader:
    """Reads state from a savepoint or a retained checkpoint. Not in PyFlink.

    Methods that end in ``_as_arrow`` return an Arrow table and do not need Spark. The others return
    a Spark DataFrame. Rows and tuples become structs. Columns have the declared types. Without a
    declared type, the column type is inferred from the values, or the values become text.

    The parameter ``operator`` of all methods is a uid, an operator id or an operator name.

    >>> import pyarrow as pa
    >>> from firesteel.state_processor import SavepointWriter
    >>> counts = ValueStateDescriptor("count", Types.LONG())
    >>> rows = pa.table({"key": ["be"], "value": [2]})
    >>> writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
    >>> writer.with_keyed_state("counter", counts, rows, Types.STRING()).write("savepoint")
    >>> reader = SavepointReader.read(env, "savepoint")
    >>> reader.read_keyed_state_as_arrow("counter", "count").to_pylist()
    [{'key': 'be', 'value': 2}]
    """

    def __init__(self, environment: StreamExecutionEnvironment, path: str) -> None:
        self._environment = environment
        self._path = path
        self._options = file_system_options(environment.program.configuration)
        _, self._metadata = open_checkpoint(path, self._options)

    @staticmethod
    def read(environment: StreamExecutionEnvironment, path: str) -> SavepointReader:
        """Open a savepoint or a checkpoint.

        Args:
            environment: Provides the settings of file systems, and the Spark session.
            path: The directory of the savepoint.
        """
        return SavepointReader(environment, path)

    def read_keyed_state(self, operator: str, state: str, *, allow_pickle: bool = False) -> Any:
        """Return a keyed state as a DataFrame with the columns ``key`` and ``value``.

        The value of a list state is an array, and the value of a map state is a map. State of
        windows and timers also has a column ``namespace``. If the types of keys and values are
        declared, Spark reads the files in parallel when the DataFrame is used. Otherwise this
        method reads them in the driver.

        Args:
            operator: The uid, operator id or name of the operator.
            state: The name of the state.
            allow_pickle: True allows objects of the job's own classes. Reading them runs their
                code.

        >>> import pyarrow as pa
        >>> from firesteel.state_processor import SavepointWriter
        >>> counts = ValueStateDescriptor("count", Types.LONG())
        >>> rows = pa.table({"key": ["be"], "value": [2]})
        >>> writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
        >>> writer.with_keyed_state("counter", counts, rows, Types.STRING()).write("savepoint")
        >>> session = env.get_spark_session()
        >>> SavepointReader.read(env, "savepoint").read_keyed_state("counter", "count").collect()
        [Row(key='be', value=2)]
        """
        from firesteel.spark.savepoint_frames import read_frame

        session = self._environment.get_spark_session()
        return read_frame(session, self._open(operator, state, allow_pickle=allow_pickle))

    def read_keyed_state_as_arrow(
        self, operator: str, state: str, *, allow_pickle: bool = False
    ) -> pa.Table:
        """Return a keyed state as an Arrow table with the columns ``key`` and ``value``.

        Args:
            operator: The uid, operator id or name of the operator.
            state: The name of the state.
            allow_pickle: True allows objects of the job's own classes. Reading them runs their
                code.
        """
        found = self._open(operator, state, allow_pickle=allow_pickle)
        return found.arrow_table(found.entries())

    def read_list_state(self, operator: str, state: str, *, allow_pickle: bool = False) -> Any:
        """Return an operator list state as a DataFrame with the column ``value``.

        Args:
            operator: The uid, operator id or name of the operator.
            state: The name of the state.
            allow_pickle: True allows objects of the job's own classes. Reading them runs their
                code.

        >>> import pyarrow as pa
        >>> from firesteel.state_processor import SavepointWriter
        >>> buffer = ListStateDescriptor("buffer", Types.STRING())
        >>> writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
        >>> writer.with_list_state("sink", buffer, pa.table({"value": ["a"]})).write("savepoint")
        >>> session = env.get_spark_session()
        >>> SavepointReader.read(env, "savepoint").read_list_state("sink", "buffer").collect()
        [Row(value='a')]
        """
        return self._frame(
            self.read_list_state_as_arrow(operator, state, allow_pickle=allow_pickle)
        )

    def read_list_state_as_arrow(
        self, operator: str, state: str, *, allow_pickle: bool = False
    ) -> pa.Table:
        """Return an operator list state as an Arrow table with the column ``value``.

        Args:
            operator: The uid, operator id or name of the operator.
            state: The name of the state.
            allow_pickle: True allows objects of the job's own classes. Reading them runs their
                code.

        >>> import pyarrow as pa
        >>> from firesteel.state_processor import SavepointWriter
        >>> buffer = ListStateDescriptor("buffer", Types.STRING())
        >>> writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
        >>> rows = pa.table({"value": ["a", "b"]})
        >>> writer.with_list_state("sink", buffer, rows).write("savepoint")
        >>> reader = SavepointReader.read(env, "savepoint")
        >>> reader.read_list_state_as_arrow("sink", "buffer").to_pylist()
        [{'value': 'a'}, {'value': 'b'}]
        """
        return self._operator_state(operator, state, Redistribution.SPLIT, allow_pickle)

    def read_union_state(self, operator: str, state: str, *, allow_pickle: bool = False) -> Any:
        """Return an operator union list state as a DataFrame with the column ``value``.

        Args:
            operator: The uid, operator id or name of the operator.
            state: The name of the state.
            allow_pickle: True allows objects of the job's own classes. Reading them runs their
                code.

        >>> import pyarrow as pa
        >>> from firesteel.state_processor import SavepointWriter
        >>> offsets = ListStateDescriptor("offsets", Types.LONG())
        >>> writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
        >>> writer.with_union_state("source", offsets, pa.table({"value": [7]})).write("savepoint")
        >>> session = env.get_spark_session()
        >>> SavepointReader.read(env, "savepoint").read_union_state("source", "offsets").collect()
        [Row(value=7)]
        """
        return self._frame(
            self.read_union_state_as_arrow(operator, state, allow_pickle=allow_pickle)
        )

    def read_union_state_as_arrow(
        self, operator: str, state: str, *, allow_pickle: bool = False
    ) -> pa.Table:
        """Return an operator union list state as an Arrow table with the column ``value``.

        Args:
            operator: The uid, operator id or name of the operator.
            state: The name of the state.
            allow_pickle: True allows objects of the job's own classes. Reading them runs their
                code.

        >>> import pyarrow as pa
        >>> from firesteel.state_processor import SavepointWriter
        >>> offsets = ListStateDescriptor("offsets", Types.LONG())
        >>> writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
        >>> writer.with_union_state("source", offsets, pa.table({"value": [7]})).write("savepoint")
        >>> reader = SavepointReader.read(env, "savepoint")
        >>> reader.read_union_state_as_arrow("source", "offsets").to_pylist()
        [{'value': 7}]
        """
        return self._operator_state(operator, state, Redistribution.UNION, allow_pickle)

    def read_broadcast_state(self, operator: str, state: str, *, allow_pickle: bool = False) -> Any:
        """Return a broadcast state as a DataFrame with the columns ``key`` and ``value``.

        Args:
            operator: The uid, operator id or name of the operator.
            state: The name of the state.
            allow_pickle: True allows objects of the job's own classes. Reading them runs their
                code.

        >>> import pyarrow as pa
        >>> from firesteel.state_processor import SavepointWriter
        >>> rules = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
        >>> rows = pa.table({"key": ["limit"], "value": [100]})
        >>> writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
        >>> writer.with_broadcast_state("rules", rules, rows).write("savepoint")
        >>> session = env.get_spark_session()
        >>> SavepointReader.read(env, "savepoint").read_broadcast_state("rules", "rules").collect()
        [Row(key='limit', value=100)]
        """
        return self._frame(
            self.read_broadcast_state_as_arrow(operator, state, allow_pickle=allow_pickle)
        )

    def read_broadcast_state_as_arrow(
        self, operator: str, state: str, *, allow_pickle: bool = False
    ) -> pa.Table:
        """Return a broadcast state as an Arrow table with the columns ``key`` and ``value``.

        Args:
            operator: The uid, operator id or name of the operator.
            state: The name of the state.
            allow_pickle: True allows objects of the job's own classes. Reading them runs their
                code.

        >>> import pyarrow as pa
        >>> from firesteel.state_processor import SavepointWriter
        >>> rules = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
        >>> rows = pa.table({"key": ["limit"], "value": [100]})
        >>> writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
        >>> writer.with_broadcast_state("rules", rules, rows).write("savepoint")
        >>> reader = SavepointReader.read(env, "savepoint")
        >>> reader.read_broadcast_state_as_arrow("rules", "rules").to_pylist()
        [{'key': 'limit', 'value': 100}]
        """
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
