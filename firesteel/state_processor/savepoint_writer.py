"""SavepointWriter, which writes new and changed savepoints."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import Any

from firesteel.checkpoint.metadata import CheckpointMetadata, OperatorMetadata, SnapshotType
from firesteel.checkpoint.savepoints.savepoint import delete_unfinished
from firesteel.checkpoint.savepoints.savepoint_draft import (
    copy_operator,
    new_operator,
    renamed_operator,
)
from firesteel.checkpoint.savepoints.savepoint_reader import StateNotFoundError, find_operator
from firesteel.checkpoint.storage.metadata_file import open_checkpoint, write_metadata
from firesteel.checkpoint.storage.storage import Storage, open_storage
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from firesteel.errors import InvalidProgramError
from firesteel.filesystems.settings import file_system_options
from firesteel.graph.operator_ids import hash_of_uid
from firesteel.graph.parallelism import check_max_parallelism
from firesteel.stability import public_evolving
from firesteel.state.operator_state import Redistribution
from firesteel.state_processor.new_states import NewKeyedState, NewOperatorState

__all__ = ["SavepointWriter"]


@public_evolving
class SavepointWriter:
    """Collects the state of a new savepoint, and writes it. Not in PyFlink.

    The rows of a state are a Spark DataFrame or a ``pyarrow.Table`` with the columns that
    ``SavepointReader`` returns. The parameter ``state`` is the descriptor that the job uses. The
    name is sufficient if the savepoint already has the state.

    >>> import pyarrow as pa
    >>> from firesteel.state_processor import SavepointReader
    >>> counts = ValueStateDescriptor("count", Types.LONG())
    >>> writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
    >>> rows = pa.table({"key": ["be"], "value": [2]})
    >>> writer.with_keyed_state("counter", counts, rows, Types.STRING()).write("first")
    >>> changed = SavepointWriter.from_existing_savepoint(env, "first")
    >>> rows = pa.table({"key": ["be"], "value": [5]})
    >>> changed.with_keyed_state("counter", "count", rows).write("second")
    >>> reader = SavepointReader.read(env, "second")
    >>> reader.read_keyed_state_as_arrow("counter", "count").to_pylist()
    [{'key': 'be', 'value': 5}]
    """

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        base: CheckpointMetadata,
        directory: Storage | None,
        max_parallelism: int,
        *,
        allow_pickle: bool = False,
    ) -> None:
        """``directory`` has the files of ``base``."""
        self._options = file_system_options(environment.program.configuration)
        self._parallelism = min(environment.get_parallelism(), max_parallelism)
        self._base = base
        self._directory = directory
        self._max_parallelism = max_parallelism
        self._allow_pickle = allow_pickle
        # New states by operator id and state name.
        self._keyed: dict[str, dict[str, NewKeyedState]] = {}
        self._operator: dict[str, dict[str, NewOperatorState]] = {}

    @staticmethod
    def new_savepoint(
        environment: StreamExecutionEnvironment, max_parallelism: int
    ) -> SavepointWriter:
        """Start an empty savepoint, for the first start of a job.

        Args:
            environment: Provides the settings of file systems and the parallelism of new operators.
            max_parallelism: The maximum parallelism of the job.
        """
        now = round(time.time() * 1000)
        empty = CheckpointMetadata(
            checkpoint_id=0,
            type=SnapshotType.SAVEPOINT,
            job_id=uuid.uuid4().hex,
            job_name="",
            epoch=0,
            trigger_time=now,
            completion_time=now,
            operators=(),
        )
        return SavepointWriter(environment, empty, None, check_max_parallelism(max_parallelism))

    @staticmethod
    def from_existing_savepoint(
        environment: StreamExecutionEnvironment, path: str, *, allow_pickle: bool = False
    ) -> SavepointWriter:
        """Start with all state of a savepoint, which does not change. The new one is a copy.

        Args:
            environment: Provides the settings of file systems and the parallelism of new operators.
            path: The directory of a savepoint or of a retained checkpoint.
            allow_pickle: True allows objects of the job's own classes in a checkpoint. Copying them
                runs their code.
        """
        options = file_system_options(environment.program.configuration)
        directory, base = open_checkpoint(path, options)
        largest = max((operator.max_parallelism for operator in base.operators), default=128)
        return SavepointWriter(environment, base, directory, largest, allow_pickle=allow_pickle)

    def with_keyed_state(
        self,
        uid: str,
        state: StateDescriptor | str,
        rows: Any,
        key_type: TypeInformation | None = None,
    ) -> SavepointWriter:
        """Set a keyed state of an operator. It replaces a state of the same name.

        If the state has a time to live, it starts for all entries when the savepoint is written.

        Args:
            uid: The uid of the operator. An unknown uid adds an operator.
            state: The descriptor of the state, or the name of a state that the savepoint has.
            rows: The columns ``key`` and ``value``. A row without a value is left out.
            key_type: The type of the keys in the job's ``key_by``. It distinguishes rows from
                tuples, which are both structs in a table. The default is the type in the savepoint.
        """
        operator = self._find(uid)
        new = NewKeyedState.of(operator, state, rows, key_type)
        self._keyed.setdefault(operator.operator_id, {})[new.name] = new
        return self

    def with_list_state(
        self, uid: str, state: ListStateDescriptor | str, rows: Any
    ) -> SavepointWriter:
        """Set an operator list state. It replaces a state of the same name.

        Args:
            uid: The uid of the operator. An unknown uid adds an operator.
            state: The descriptor of the state, or the name of a state that the savepoint has.
            rows: The column ``value``.

        >>> import pyarrow as pa
        >>> buffer = ListStateDescriptor("buffer", Types.STRING())
        >>> writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
        >>> rows = pa.table({"value": ["a", "b"]})
        >>> writer.with_list_state("sink", buffer, rows).write("savepoint")
        """
        return self._with_operator_state(uid, state, Redistribution.SPLIT, rows)

    def with_union_state(
        self, uid: str, state: ListStateDescriptor | str, rows: Any
    ) -> SavepointWriter:
        """Set an operator union list state. It replaces a state of the same name.

        Args:
            uid: The uid of the operator. An unknown uid adds an operator.
            state: The descriptor of the state, or the name of a state that the savepoint has.
            rows: The column ``value``.

        >>> import pyarrow as pa
        >>> offsets = ListStateDescriptor("offsets", Types.LONG())
        >>> writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
        >>> writer.with_union_state("source", offsets, pa.table({"value": [7]})).write("savepoint")
        """
        return self._with_operator_state(uid, state, Redistribution.UNION, rows)

    def with_broadcast_state(
        self, uid: str, state: MapStateDescriptor | str, rows: Any
    ) -> SavepointWriter:
        """Set a broadcast state of an operator. It replaces a state of the same name.

        Args:
            uid: The uid of the operator. An unknown uid adds an operator.
            state: The descriptor of the state, or the name of a state that the savepoint has.
            rows: The columns ``key`` and ``value``.

        >>> import pyarrow as pa
        >>> rules = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
        >>> rows = pa.table({"key": ["limit"], "value": [100]})
        >>> writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
        >>> writer.with_broadcast_state("rules", rules, rows).write("savepoint")
        """
        return self._with_operator_state(uid, state, Redistribution.BROADCAST, rows)

    def _with_operator_state(
        self, uid: str, state: StateDescriptor | str, mode: Redistribution, rows: Any
    ) -> SavepointWriter:
        operator = self._find(uid)
        new = NewOperatorState.of(operator, state, mode, rows)
        self._operator.setdefault(operator.operator_id, {})[new.name] = new
        return self

    def remove_operator(self, operator: str) -> SavepointWriter:
        """Remove an operator with all its state.

        Args:
            operator: The uid, operator id or name of the operator.

        Raises:
            StateNotFoundError: The savepoint has no such operator.

        >>> SavepointWriter.new_savepoint(env, max_parallelism=128).remove_operator("counter")
        Traceback (most recent call last):
        firesteel...StateNotFoundError: 'counter' is not the uid, id or unique name of ...
        """
        found = find_operator(self._base, operator)
        kept = tuple(one for one in self._base.operators if one is not found)
        self._base = replace(self._base, operators=kept)
        self._keyed.pop(found.operator_id, None)
        self._operator.pop(found.operator_id, None)
        return self

    def change_operator_identifier(self, operator: str, uid: str) -> SavepointWriter:
        """Move the state of an operator to a different uid.

        Args:
            operator: The uid, operator id or name of the operator.
            uid: The new uid.

        Raises:
            InvalidProgramError: The savepoint already has an operator with the new uid.

        >>> import pyarrow as pa
        >>> from firesteel.state_processor import SavepointReader
        >>> buffer = ListStateDescriptor("buffer", Types.STRING())
        >>> writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
        >>> writer = writer.with_list_state("sink", buffer, pa.table({"value": ["a"]}))
        >>> writer.change_operator_identifier("sink", "files").write("savepoint")
        >>> reader = SavepointReader.read(env, "savepoint")
        >>> reader.read_list_state_as_arrow("files", "buffer").to_pylist()
        [{'value': 'a'}]
        """
        found = find_operator(self._base, operator)
        renamed = renamed_operator(found, uid)
        if any(one.operator_id == renamed.operator_id for one in self._base.operators):
            raise InvalidProgramError(
                f"The savepoint already has an operator with uid '{uid}'. Choose a different uid."
            )
        for new in (self._keyed, self._operator):
            if found.operator_id in new:
                new[renamed.operator_id] = new.pop(found.operator_id)  # type: ignore[assignment]
        operators = tuple(renamed if one is found else one for one in self._base.operators)
        self._base = replace(self._base, operators=operators)
        return self

    def write(self, path: str) -> None:
        """Write the savepoint. If it fails, no files remain.

        Args:
            path: A directory that does not exist or is empty.

        Raises:
            InvalidProgramError: The directory has files.
        """
        target = open_storage(path, self._options)
        if target.list_files():
            raise InvalidProgramError(
                f"{target.location} already has files. A savepoint needs a new or empty directory."
            )
        try:
            operators = tuple(self._write_operator(one, target) for one in self._base.operators)
            metadata = replace(self._base, type=SnapshotType.SAVEPOINT, operators=operators)
            _sweep(metadata, target)
            write_metadata(metadata, target)
        except BaseException:
            delete_unfinished(target)
            raise

    def _find(self, uid: str) -> OperatorMetadata:
        """Return the operator of a uid. An unknown uid creates an operator."""
        try:
            return find_operator(self._base, uid)
        except StateNotFoundError:
            if any(one.operator_id == hash_of_uid(uid) for one in self._base.operators):
                raise
        operator = new_operator(uid, self._parallelism, self._max_parallelism)
        self._base = replace(self._base, operators=(*self._base.operators, operator))
        return operator

    def _write_operator(self, operator: OperatorMetadata, target: Storage) -> OperatorMetadata:
        keyed = self._keyed.get(operator.operator_id, {})
        if self._directory is not None:
            operator = copy_operator(
                operator,
                self._directory,
                target,
                keyed.keys(),
                self._options,
                allow_pickle=self._allow_pickle,
            )
        for state in keyed.values():
            operator = state.write(operator, target, self._options)
        for other in self._operator.get(operator.operator_id, {}).values():
            operator = other.write(operator)
        return operator


def _sweep(metadata: CheckpointMetadata, target: Storage) -> None:
    """Delete files of task attempts that were not used."""
    needed = {target.name_of(path) for path in metadata.files()}
    for file in target.list_files():
        if file.path not in needed:
            target.delete(file.path)
