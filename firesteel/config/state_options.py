"""Settings of the state backends."""

from __future__ import annotations

from firesteel.config.option import Option
from firesteel.config.values import BOOLEAN, INT, LIST, MEMORY_SIZE, choice

STATE_BACKEND: Option[str] = Option(
    "state.backend.type",
    choice("hashmap", "rocksdb"),
    "hashmap",
    "The storage of keyed state: hashmap is memory, rocksdb is RocksDB on local disk.",
    deprecated_keys=("state.backend",),
)
INCREMENTAL_CHECKPOINTS: Option[bool] = Option(
    "execution.checkpointing.incremental",
    BOOLEAN,
    True,
    "Let a full snapshot of RocksDB share unchanged files with the previous one.",
    deprecated_keys=("state.backend.incremental",),
)
_ROCKSDB = "state.backend.rocksdb."
ROCKSDB_LOCAL_DIRECTORIES: Option[list[str] | None] = Option(
    _ROCKSDB + "localdir",
    LIST,
    None,
    "The directories of RocksDB's files. The default is the temporary directory of the machine.",
)
ROCKSDB_MEMORY: Option[int] = Option(
    _ROCKSDB + "memory.fixed-per-slot",
    MEMORY_SIZE,
    128 * 1024 * 1024,
    "Memory for caches and write buffers of all RocksDB instances of a slot.",
)
ROCKSDB_PREDEFINED_OPTIONS: Option[str] = Option(
    _ROCKSDB + "predefined-options",
    choice(
        "DEFAULT",
        "SPINNING_DISK_OPTIMIZED",
        "SPINNING_DISK_OPTIMIZED_HIGH_MEM",
        "FLASH_SSD_OPTIMIZED",
    ),
    "DEFAULT",
    "A predefined set of RocksDB options for a type of disk.",
)
ROCKSDB_TRANSFER_THREADS: Option[int] = Option(
    _ROCKSDB + "checkpoint.transfer.thread.num",
    INT,
    4,
    "The number of threads that copy files of a snapshot.",
)
