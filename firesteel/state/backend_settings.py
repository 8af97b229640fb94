"""Which state backend a job uses, as plain data that travels to the slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DEFAULT_ROCKSDB_MEMORY = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StateBackendSettings:
    """``memory_bytes`` is for the caches and write buffers of all RocksDB instances of a process.

    ``local_directories``: where RocksDB keeps its files; the temporary directory if there are none.
    """

    kind: Literal["hashmap", "rocksdb"] = "hashmap"
    local_directories: tuple[str, ...] = ()
    memory_bytes: int = DEFAULT_ROCKSDB_MEMORY
    predefined_options: str = "DEFAULT"
    incremental: bool = True


HASHMAP = StateBackendSettings()
