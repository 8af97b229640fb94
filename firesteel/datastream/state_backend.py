"""State backends: the settings for the store of keyed state, in memory or in RocksDB.

As in Flink 2 the choice is a setting, ``state.backend.type``. ``set_state_backend`` writes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, NoReturn

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
    """A store of keyed state, for ``StreamExecutionEnvironment.set_state_backend``.

    >>> issubclass(HashMapStateBackend, StateBackend)
    True
    """

    @abstractmethod
    def __init__(self) -> None:
        # ``set_state_backend`` copies them into the configuration of the environment.
        self.settings = Configuration()


class HashMapStateBackend(StateBackend):
    """Keeps state as objects in the memory of the slots. It is fast; the memory limits its size.

    >>> _ = env.set_state_backend(HashMapStateBackend())
    """

    def __init__(self) -> None:
        super().__init__()
        self.settings.set(state_options.STATE_BACKEND, "hashmap")


class PredefinedOptions(Enum):
    """Sets of RocksDB options for kinds of disks.

    >>> [options.name for options in PredefinedOptions]
    ['DEFAULT', 'SPINNING_DISK_OPTIMIZED', 'SPINNING_DISK_OPTIMIZED_HIGH_MEM', 'FLASH_SSD_OPTIMIZED']
    """

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """Keeps state in RocksDB on the local disk of each slot. It may be larger than memory; it is slower.

    It needs the extra ``rocksdb``: ``pip install 'firesteel[rocksdb]'``.

    Args:
        enable_incremental_checkpointing: Let checkpoints share files that have not changed. None
            takes the configured value.

    >>> backend = EmbeddedRocksDBStateBackend(enable_incremental_checkpointing=True)
    >>> backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    >>> backend.set_db_storage_paths("/mnt/ssd1", "/mnt/ssd2")
    >>> backend.set_number_of_transfer_threads(8)
    >>> backend.is_incremental_checkpoints_enabled(), backend.get_predefined_options().name
    (True, 'FLASH_SSD_OPTIMIZED')
    >>> backend.get_db_storage_paths(), backend.get_number_of_transfer_threads()
    (['/mnt/ssd1', '/mnt/ssd2'], 8)
    >>> _ = env.set_state_backend(backend)
    """

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        super().__init__()
        self.settings.set(state_options.STATE_BACKEND, "rocksdb")
        if enable_incremental_checkpointing is not None:
            self.settings.set(
                state_options.INCREMENTAL_CHECKPOINTS, enable_incremental_checkpointing
            )

    def set_db_storage_paths(self, *paths: str) -> None:
        """Set the directories for the files of RocksDB. Without them it uses the temporary directory.

        Args:
            paths: Local directories.
        """
        if not all(paths):
            raise ValueError("A storage path of RocksDB must be the path of a directory")
        option = state_options.ROCKSDB_LOCAL_DIRECTORIES
        if paths:
            self.settings.set(option, list(paths))
        else:
            self.settings.remove_config(option.key)

    def get_db_storage_paths(self) -> list[str]:
        """Return the directories for the files of RocksDB."""
        return list(self.settings.get(state_options.ROCKSDB_LOCAL_DIRECTORIES) or ())

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Return True if checkpoints share files that have not changed."""
        return self.settings.get(state_options.INCREMENTAL_CHECKPOINTS)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Set the options for a kind of disk.

        Args:
            options: The options.
        """
        if not isinstance(options, PredefinedOptions):
            raise TypeError(f"set_predefined_options expects PredefinedOptions, got {options!r}")
        self.settings.set(state_options.ROCKSDB_PREDEFINED_OPTIONS, options.name)

    def get_predefined_options(self) -> PredefinedOptions:
        """Return the options for a kind of disk."""
        return PredefinedOptions[self.settings.get(state_options.ROCKSDB_PREDEFINED_OPTIONS)]

    def set_options(self, options_factory_class_name: str) -> NoReturn:
        """Not supported: the argument names a Java class.

        Raises:
            NeverSupportedError: Always.

        >>> EmbeddedRocksDBStateBackend().set_options("com.example.Options")
        Traceback (most recent call last):
        ...
        firesteel.errors.NeverSupportedError: ...it names a Java class; use set_predefined_options...
        """
        raise NeverSupportedError(
            "EmbeddedRocksDBStateBackend.set_options",
            "it names a Java class; use set_predefined_options, and state.backend.rocksdb.memory."
            "fixed-per-slot for the memory",
        )

    def get_options(self) -> str | None:
        """Return None: there is no Java class for options.

        >>> EmbeddedRocksDBStateBackend().get_options() is None
        True
        """
        return None

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Set how many files of a snapshot are copied at the same time.

        Args:
            number_of_transfering_threads: At least 1.
        """
        if number_of_transfering_threads < 1:
            raise ValueError("The number of transfer threads must be at least 1")
        self.settings.set(state_options.ROCKSDB_TRANSFER_THREADS, number_of_transfering_threads)

    def get_number_of_transfer_threads(self) -> int:
        """Return how many files of a snapshot are copied at the same time."""
        return self.settings.get(state_options.ROCKSDB_TRANSFER_THREADS)


if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
