"""Creates the keyed state of an operator subtask."""

from __future__ import annotations

import importlib.util

from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import ConfigurationError
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.backend_settings import StateBackendSettings
from firesteel.state.hashmap.keyed_state import HashMapKeyedState


def create_keyed_state(
    settings: StateBackendSettings, key_type: TypeInformation | None, max_parallelism: int
) -> KeyedStateBackend:
    if settings.kind == "hashmap":
        return HashMapKeyedState(key_type, compress=settings.compress)
    check_installed(settings)
    from firesteel.state.rocksdb.keyed_state import RocksDBKeyedState

    return RocksDBKeyedState(key_type, max_parallelism, settings)


def check_installed(settings: StateBackendSettings) -> None:
    """Whether this machine has what the backend needs."""
    if settings.kind == "rocksdb" and importlib.util.find_spec("rocksdict") is None:
        raise ConfigurationError(
            "state.backend.type is rocksdb, but the Python package rocksdict is not installed. "
            "Install it, on every machine that runs tasks, with: pip install 'firesteel[rocksdb]'",
            key="state.backend.type",
        )
