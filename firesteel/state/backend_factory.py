"""Creates keyed state backends from settings."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Literal

from firesteel.common.configuration import Configuration
from firesteel.common.typeinfo import TypeInformation
from firesteel.config import checkpoint_options, state_options
from firesteel.errors import ConfigurationError
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend


@dataclass(frozen=True, slots=True)
class StateBackendSettings:
    """Settings of a keyed state backend.

    ``local_directories``: for RocksDB's files. Empty selects the temporary directory.
    ``memory_bytes``: for the caches and write buffers of all RocksDB instances of a process.
    ``incremental``: a full snapshot shares unchanged files with the previous one.
    ``compress``: compress full snapshots. RocksDB's files are always compressed.
    """

    kind: Literal["hashmap", "rocksdb"] = "hashmap"
    local_directories: tuple[str, ...] = ()
    memory_bytes: int = state_options.ROCKSDB_MEMORY.default
    predefined_options: str = "DEFAULT"
    incremental: bool = True
    transfer_threads: int = 4
    compress: bool = False


HASHMAP = StateBackendSettings()


def settings_of(configuration: Configuration) -> StateBackendSettings:
    """The settings in the configuration of a job."""
    directories = configuration.get_optional(state_options.ROCKSDB_LOCAL_DIRECTORIES)
    return StateBackendSettings(
        kind="rocksdb"
        if configuration.get(state_options.STATE_BACKEND) == "rocksdb"
        else "hashmap",
        local_directories=tuple(directories or ()),
        memory_bytes=configuration.get(state_options.ROCKSDB_MEMORY),
        predefined_options=configuration.get(state_options.ROCKSDB_PREDEFINED_OPTIONS),
        incremental=configuration.get(state_options.INCREMENTAL_CHECKPOINTS),
        transfer_threads=configuration.get(state_options.ROCKSDB_TRANSFER_THREADS),
        compress=configuration.get(checkpoint_options.SNAPSHOT_COMPRESSION),
    )


def create_keyed_state(
    settings: StateBackendSettings, key_type: TypeInformation | None, max_parallelism: int
) -> KeyedStateBackend:
    if settings.kind == "hashmap":
        return HashMapKeyedStateBackend(key_type, compress=settings.compress)
    check_installed(settings)
    from firesteel.state.rocksdb.backend import RocksDBKeyedStateBackend

    return RocksDBKeyedStateBackend(key_type, max_parallelism, settings)


def check_installed(settings: StateBackendSettings) -> None:
    """Raise an error if this machine lacks a package that the backend needs."""
    if settings.kind == "rocksdb" and importlib.util.find_spec("rocksdict") is None:
        raise ConfigurationError(
            "state.backend.type is rocksdb, but the Python package rocksdict is not installed. "
            "Install it on every machine that runs tasks: pip install 'firesteel[rocksdb]'",
            key="state.backend.type",
        )
