"""Writes savepoints: new ones, and changed ones."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from firesteel.checkpoint.errors import StorageError
from firesteel.checkpoint.keyed_state_import import (
    KEY,
    VALUE,
    KeyedStateImport,
    import_table,
)
from firesteel.checkpoint.metadata import (
    CheckpointMetadata,
    KeyedStateFile,
    OperatorMetadata,
    SnapshotType,
)
from firesteel.checkpoint.metadata_file import write_metadata
from firesteel.checkpoint.savepoint_draft import (
    copy_operator,
    file_prefix,
    new_operator,
    with_keyed_state,
)
from firesteel.checkpoint.savepoint_reader import find_operator, open_savepoint
from firesteel.checkpoint.settings import file_system_options
from firesteel.checkpoint.state_descriptions import describe_tables
from firesteel.checkpoint.storage import Storage, open_storage
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
)
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_ids import hash_of_uid
from firesteel.graph.parallelism import check_max_parallelism
from firesteel.state.tables import TableDescription, TableKind

if TYPE_CHECKING:
    from firesteel.datastream import StreamExecutionEnvironment

__all__ = ["SavepointWriter"]


@dataclass(frozen=True, slots=True)
class _Bootstrap:
    """A state that comes from a table."""

    descriptor: StateDescriptor
    rows: Any
    key_type: TypeInformation | None


class SavepointWriter:
    """Collects what the new savepoint shall have; ``write`` writes it.

    >>> from firesteel.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> SavepointWriter.new_savepoint(env, max_parallelism=128).remove_operator("counter")
    Traceback (most recent call last):
    firesteel.checkpoint.savepoint_reader.StateNotFoundError: no operator is called 'counter', or several are; there are: none
    """

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        base: CheckpointMetadata,
        directory: Storage | None,
        max_parallelism: int,
    ) -> None:
        """``directory`` is where ``base`` has its files."""
        self._options = file_system_options(environment.get_configuration())
        self._parallelism = environment.get_parallelism()
        self._base = base
        self._directory = directory
        self._max_parallelism = max_parallelism
        self._bootstraps: dict[str, dict[str, _Bootstrap]] = {}

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
        environment: StreamExecutionEnvironment, path: str
    ) -> SavepointWriter:
        """Begin with all that a savepoint has. The new one is a copy, and leaves it as it is."""
        options = file_system_options(environment.get_configuration())
        directory, base = open_savepoint(path, options)
        largest = max((operator.max_parallelism for operator in base.operators), default=128)
        return SavepointWriter(environment, base, directory, largest)

    def with_keyed_state(
        self,
        uid: str,
        descriptor: StateDescriptor,
        rows: Any,
        key_type: TypeInformation | None = None,
    ) -> SavepointWriter:
        """Give an operator a keyed state, in the place of one of that name if it has one.

        ``rows`` is a Spark DataFrame or a ``pyarrow.Table`` with the columns ``key`` and ``value``,
        as ``SavepointReader`` gives them. ``key_type`` is that of the job's ``key_by``, which matters
        for rows and tuples: both are structs in a table. A row without a value is left out. With a
        time to live, everything counts as used at the time of writing.
        """
        names = _column_names(rows)
        if names != {KEY, VALUE}:
            raise InvalidProgramError(
                f"The rows of the state '{descriptor.name}' must have the columns '{KEY}' and "
                f"'{VALUE}', but they have: {', '.join(sorted(names))}."
            )
        states = self._bootstraps.setdefault(uid, {})
        states[descriptor.name] = _Bootstrap(descriptor, rows, key_type)
        return self

    def remove_operator(self, operator: str) -> SavepointWriter:
        """Leave an operator out with all its state. It is named by uid, operator id or name."""
        found = find_operator(self._base, operator)
        kept = tuple(one for one in self._base.operators if one is not found)
        self._base = replace(self._base, operators=kept)
        return self

    def write(self, path: str) -> None:
        """Write the savepoint into a new directory. After an error nothing is left."""
        target = open_storage(path, self._options)
        if target.list_files():
            raise InvalidProgramError(
                f"There are files in {target.location} already. A savepoint needs a new directory."
            )
        try:
            operators = [self._write_operator(one, target) for one in self._operators()]
            metadata = replace(self._base, operators=tuple(operators))
            self._sweep(metadata, target)
            write_metadata(metadata, target)
        except BaseException:
            _remove(target)
            raise

    def _operators(self) -> list[OperatorMetadata]:
        """Those that there were, and those that are new."""
        known = {operator.operator_id for operator in self._base.operators}
        parallelism = min(self._parallelism, self._max_parallelism)
        return [*self._base.operators] + [
            new_operator(uid, parallelism, self._max_parallelism)
            for uid in self._bootstraps
            if hash_of_uid(uid) not in known
        ]

    def _write_operator(self, operator: OperatorMetadata, target: Storage) -> OperatorMetadata:
        bootstraps = self._bootstraps_of(operator)
        if self._directory is not None:
            operator = copy_operator(operator, self._directory, target, set(bootstraps))
        for bootstrap in bootstraps.values():
            table = _table(bootstrap.descriptor)
            files = self._write_state(operator, bootstrap, table, target)
            (described,) = describe_tables({bootstrap.descriptor.name: table}, bootstrap.key_type)
            operator = with_keyed_state(operator, described, files)
        return operator

    def _bootstraps_of(self, operator: OperatorMetadata) -> dict[str, _Bootstrap]:
        return next(
            (
                states
                for uid, states in self._bootstraps.items()
                if hash_of_uid(uid) == operator.operator_id
            ),
            {},
        )

    def _write_state(
        self,
        operator: OperatorMetadata,
        bootstrap: _Bootstrap,
        table: TableDescription,
        target: Storage,
    ) -> dict[int, tuple[KeyedStateFile, ...]]:
        order = KeyedStateImport(
            state=bootstrap.descriptor.name,
            table=table,
            key_type=bootstrap.key_type,
            parallelism=operator.parallelism,
            max_parallelism=operator.max_parallelism,
            location=target.location,
            prefix=file_prefix(operator),
            options=self._options,
            stamp=round(time.time() * 1000),
        )
        if isinstance(bootstrap.rows, pa.Table):
            return import_table(order, bootstrap.rows)
        from firesteel.spark.savepoint_frames import import_frame

        return import_frame(order, bootstrap.rows)

    def _sweep(self, metadata: CheckpointMetadata, target: Storage) -> None:
        """Tasks that were tried twice have left files that nobody needs."""
        needed = {target.name_of(path) for path in metadata.files()}
        for file in target.list_files():
            if file.path not in needed:
                target.delete(file.path)


def _column_names(rows: Any) -> set[str]:
    if isinstance(rows, pa.Table):
        return set(rows.column_names)
    if not all(hasattr(rows, name) for name in ("columns", "sparkSession")):
        raise InvalidProgramError(
            f"State is written from a Spark DataFrame or a pyarrow.Table, not from {type(rows).__qualname__}."
        )
    return set(rows.columns)


def _table(descriptor: StateDescriptor) -> TableDescription:
    ttl = descriptor.ttl_config is not None and descriptor.ttl_config.is_enabled()
    if isinstance(descriptor, ListStateDescriptor):
        return TableDescription(TableKind.LIST, element_type=descriptor.element_type_info, ttl=ttl)
    if isinstance(descriptor, MapStateDescriptor):
        return TableDescription(
            TableKind.MAP,
            element_type=descriptor.value_type_info,
            entry_type=descriptor.key_type_info,
            ttl=ttl,
        )
    return TableDescription(TableKind.VALUE, element_type=descriptor.type_info, ttl=ttl)


def _remove(target: Storage) -> None:
    """What was written so far; the directory is new, so all of it is ours."""
    try:
        target.delete_directory()
    except StorageError:
        return
