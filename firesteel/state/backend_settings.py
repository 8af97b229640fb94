"""Which state backend a job uses, as plain data that travels to the slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from firesteel.common.configuration import Configuration
from firesteel.config import checkpoint_options, options


@dataclass(frozen=True, slots=True)
class StateBackendSettings:
    """``memory_bytes`` is for the caches and write buffers of all RocksDB instances of a process.

    ``local_directories``: where RocksDB keeps its files; the temporary directory if there are none.
    ``compress`` is for full snapshots; RocksDB's files are compressed in any case.
    """

    kind: Literal["hashmap", "rocksdb"] = "hashmap"
    local_directories: tuple[str, ...] = ()
    memory_bytes: int = options.ROCKSDB_MEMORY.default
    predefined_options: str = "DEFAULT"
    incremental: bool = True
    transfer_threads: int = 4
    compress: bool = False


HASHMAP = StateBackendSettings()


def settings_of(configuration: Configuration) -> StateBackendSettings:
    """What a job's configuration says."""
    directories = configuration.get_optional(options.ROCKSDB_LOCAL_DIRECTORIES)
    return StateBackendSettings(
        kind="rocksdb" if configuration.get(options.STATE_BACKEND) == "rocksdb" else "hashmap",
        local_directories=tuple(directories or ()),
        memory_bytes=configuration.get(options.ROCKSDB_MEMORY),
        predefined_options=configuration.get(options.ROCKSDB_PREDEFINED_OPTIONS),
        incremental=configuration.get(options.INCREMENTAL_CHECKPOINTS),
        transfer_threads=configuration.get(options.ROCKSDB_TRANSFER_THREADS),
        compress=configuration.get(checkpoint_options.SNAPSHOT_COMPRESSION),
    )
