"""Writes savepoints: new ones, and changed ones."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firesteel.checkpoint.errors import StorageError
from firesteel.checkpoint.metadata import CheckpointMetadata, OperatorMetadata, SnapshotType
from firesteel.checkpoint.rules.settings import file_system_options
from firesteel.checkpoint.savepoints.savepoint_draft import (
    copy_operator,
    new_operator,
    renamed_operator,
)
from firesteel.checkpoint.savepoints.savepoint_reader import StateNotFoundError, find_operator
from firesteel.checkpoint.storage.metadata_file import open_checkpoint, write_metadata
from firesteel.checkpoint.storage.storage import Storage, open_storage
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_ids import hash_of_uid
from firesteel.graph.parallelism import check_max_parallelism
from firesteel.state.operator_state import Redistribution
from firesteel.state_processor.new_states import NewKeyedState, NewOperatorState

if TYPE_CHECKING:
    from firesteel.datastream import StreamExecutionEnvironment

__all__ = ["SavepointWriter"]


class SavepointWriter:
    """Collects what the new savepoint shall have; ``write`` writes it.

    Rows of state come in a Spark DataFrame or a ``pyarrow.Table``, in the columns that
    ``SavepointReader`` gives. A state is named by the descriptor that the job uses; the name alone
    does if the savepoint has the state already.

    >>> from firesteel.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> SavepointWriter.new_savepoint(env, max_parallelism=128).remove_operator("counter")
    Traceback (most recent call last):
    firesteel.checkpoint.savepoints.savepoint_reader.StateNotFoundError: no operator is called 'counter', or several are; there are: none
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
        """``directory`` is where ``base`` has its files."""
        self._options = file_system_options(environment._configuration)
        self._parallelism = min(environment.get_parallelism(), max_parallelism)
        self._base = base
        self._directory = directory
        self._max_parallelism = max_parallelism
        self._allow_pickle = allow_pickle
        # By operator id and name.
        self._keyed: dict[str, dict[str, NewKeyedState]] = {}
        self._operator: dict[str, dict[str, NewOperatorState]] = {}

    @staticmethod
    def new_savepoint(
        environment: StreamExecutionEnvironment, max_parallelism: int
    ) -> SavepointWriter:
        """A savepoint with nothing in it: for a job that shall not start from nothing."""
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
        """Begin with all that a savepoint has. The new one is a copy, and leaves it as it is.

        A retained checkpoint will do, too; if it has objects of the job's own classes, these have to
        be rebuilt on the way, which runs their code and needs ``allow_pickle``.
        """
        options = file_system_options(environment._configuration)
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
        """Give an operator a keyed state, in the place of one of that name if it has one.

        ``rows`` has the columns ``key`` and ``value``. ``key_type`` is that of the job's ``key_by``;
        if it is not given, the one that the operator's keys have in the savepoint. It matters for
        rows and tuples: both are structs in a table. A row without a value is left out. With a time
        to live, everything counts as used at the time of writing.
        """
        operator = self._find(uid)
        new = NewKeyedState.of(operator, state, rows, key_type)
        self._keyed.setdefault(operator.operator_id, {})[new.name] = new
        return self

    def with_list_state(
        self, uid: str, state: ListStateDescriptor | str, rows: Any
    ) -> SavepointWriter:
        """Give an operator a list state, in the place of one of that name; column ``value``."""
        return self._with_operator_state(uid, state, Redistribution.SPLIT, rows)

    def with_union_state(
        self, uid: str, state: ListStateDescriptor | str, rows: Any
    ) -> SavepointWriter:
        """Give an operator a union list state, in the place of one of that name; column ``value``."""
        return self._with_operator_state(uid, state, Redistribution.UNION, rows)

    def with_broadcast_state(
        self, uid: str, state: MapStateDescriptor | str, rows: Any
    ) -> SavepointWriter:
        """Give an operator a broadcast state, in the place of one of that name; columns ``key``, ``value``."""
        return self._with_operator_state(uid, state, Redistribution.BROADCAST, rows)

    def _with_operator_state(
        self, uid: str, state: StateDescriptor | str, mode: Redistribution, rows: Any
    ) -> SavepointWriter:
        operator = self._find(uid)
        new = NewOperatorState.of(operator, state, mode, rows)
        self._operator.setdefault(operator.operator_id, {})[new.name] = new
        return self

    def remove_operator(self, operator: str) -> SavepointWriter:
        """Leave an operator out with all its state. It is named by uid, operator id or name."""
        found = find_operator(self._base, operator)
        kept = tuple(one for one in self._base.operators if one is not found)
        self._base = replace(self._base, operators=kept)
        self._keyed.pop(found.operator_id, None)
        self._operator.pop(found.operator_id, None)
        return self

    def change_operator_identifier(self, operator: str, uid: str) -> SavepointWriter:
        """Give the state of an operator to the one of another uid."""
        found = find_operator(self._base, operator)
        renamed = renamed_operator(found, uid)
        if any(one.operator_id == renamed.operator_id for one in self._base.operators):
            raise InvalidProgramError(f"The savepoint has an operator of uid '{uid}' already.")
        for new in (self._keyed, self._operator):
            if found.operator_id in new:
                new[renamed.operator_id] = new.pop(found.operator_id)  # type: ignore[assignment]
        operators = tuple(renamed if one is found else one for one in self._base.operators)
        self._base = replace(self._base, operators=operators)
        return self

    def write(self, path: str) -> None:
        """Write the savepoint into a new directory. After an error nothing is left."""
        target = open_storage(path, self._options)
        if target.list_files():
            raise InvalidProgramError(
                f"There are files in {target.location} already. A savepoint needs a new directory."
            )
        try:
            operators = tuple(self._write_operator(one, target) for one in self._base.operators)
            metadata = replace(self._base, type=SnapshotType.SAVEPOINT, operators=operators)
            _sweep(metadata, target)
            write_metadata(metadata, target)
        except BaseException:
            _remove(target)
            raise

    def _find(self, uid: str) -> OperatorMetadata:
        """The operator of a uid, which is new if there is none."""
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
    """Tasks that were tried twice have left files that nobody needs."""
    needed = {target.name_of(path) for path in metadata.files()}
    for file in target.list_files():
        if file.path not in needed:
            target.delete(file.path)


def _remove(target: Storage) -> None:
    """What was written so far; the directory is new, so all of it is ours."""
    try:
        target.delete_directory()
    except StorageError:
        return
