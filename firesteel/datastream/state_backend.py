"""Where keyed state lives: in memory, or in RocksDB on local disk.

As in Flink 2, the choice is a setting: ``state.backend.type``, ``set_state_backend``, or both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn

from firesteel.common.configuration import Configuration
from firesteel.config import state_options
from firesteel.errors import NeverSupportedError
from firesteel.gaps import gap_importer

__all__ = [
    "EmbeddedRocksDBStateBackend",
    "HashMapStateBackend",
    "PredefinedOptions",
    "StateBackend",
]


class StateBackend(ABC):
    """What ``StreamExecutionEnvironment.set_state_backend`` takes."""

    @abstractmethod
    def _configure(self, configuration: Configuration) -> None:
        """Write the choice down."""


class HashMapStateBackend(StateBackend):
    """State as objects in the memory of the slots: fast, and as large as memory is."""

    def _configure(self, configuration: Configuration) -> None:
        configuration.set(state_options.STATE_BACKEND, "hashmap")


class PredefinedOptions(Enum):
    """Sets of options of RocksDB for kinds of disks."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """State in RocksDB on the local disk of each slot: larger than memory, slower to reach.

    It needs the extra ``rocksdb``: ``pip install 'firesteel[rocksdb]'``.

    >>> backend = EmbeddedRocksDBStateBackend()
    >>> backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    >>> backend.get_predefined_options().name
    'FLASH_SSD_OPTIMIZED'
    """

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        self._incremental = enable_incremental_checkpointing
        self._directories: list[str] = []
        self._options: PredefinedOptions | None = None
        self._threads: int | None = None

    def set_db_storage_paths(self, *paths: str) -> None:
        """Where RocksDB keeps its files; without it, the temporary directory."""
        if not all(paths):
            raise ValueError("A storage path of RocksDB is the name of a directory")
        self._directories = list(paths)

    def get_db_storage_paths(self) -> list[str]:
        return list(self._directories)

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Whether snapshots share the files that have not changed."""
        if self._incremental is None:
            return state_options.INCREMENTAL_CHECKPOINTS.default
        return self._incremental

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        if not isinstance(options, PredefinedOptions):
            raise TypeError(f"PredefinedOptions are needed here, not {options!r}")
        self._options = options

    def get_predefined_options(self) -> PredefinedOptions:
        return self._options or PredefinedOptions.DEFAULT

    def set_options(self, options_factory_class_name: str) -> NoReturn:
        raise NeverSupportedError(
            "EmbeddedRocksDBStateBackend.set_options",
            "it names a Java class; use set_predefined_options, and state.backend.rocksdb.memory."
            "fixed-per-slot for the memory",
        )

    def get_options(self) -> str | None:
        """None: there is no Java class for options."""
        return None

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """How many files of a snapshot are copied at the same time."""
        if number_of_transfering_threads < 1:
            raise ValueError("The number of transfer threads must be at least 1")
        self._threads = number_of_transfering_threads

    def get_number_of_transfer_threads(self) -> int:
        return self._threads or state_options.ROCKSDB_TRANSFER_THREADS.default

    def _configure(self, configuration: Configuration) -> None:
        configuration.set(state_options.STATE_BACKEND, "rocksdb")
        chosen: list[tuple[Any, Any]] = [
            (state_options.INCREMENTAL_CHECKPOINTS, self._incremental),
            (state_options.ROCKSDB_LOCAL_DIRECTORIES, self._directories or None),
            (state_options.ROCKSDB_PREDEFINED_OPTIONS, self._options and self._options.name),
            (state_options.ROCKSDB_TRANSFER_THREADS, self._threads),
        ]
        for option, value in chosen:
            if value is not None:
                configuration.set(option, value)


if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
