"""Slot sharing groups, and sizes of memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from firesteel.errors import NeverSupportedError

__all__ = ["MemorySize", "SlotSharingGroup"]

_UNITS = ((1 << 40, "tb"), (1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb"))


@dataclass(frozen=True, order=True)
class MemorySize:
    """A number of bytes.

    Args:
        bytes_size: The number, at least 0.

    >>> size = MemorySize.of_mebi_bytes(64)
    >>> str(size)
    '64 mb'
    >>> size.get_bytes(), size.get_kibi_bytes(), size.get_mebi_bytes()
    (67108864, 65536, 64)
    >>> size.get_gibi_bytes(), size.get_tebi_bytes()
    (0, 0)
    """

    bytes_size: int = 0

    def __post_init__(self) -> None:
        if self.bytes_size < 0:
            raise ValueError(f"A memory size must not be negative, got {self.bytes_size} bytes")

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """Return a size of some mebibytes.

        Args:
            mebi_bytes: The number of mebibytes.
        """
        return MemorySize(mebi_bytes << 20)

    def get_bytes(self) -> int:
        """Return the number of bytes."""
        return self.bytes_size

    def get_kibi_bytes(self) -> int:
        """Return the number of whole kibibytes."""
        return self.bytes_size >> 10

    def get_mebi_bytes(self) -> int:
        """Return the number of whole mebibytes."""
        return self.bytes_size >> 20

    def get_gibi_bytes(self) -> int:
        """Return the number of whole gibibytes."""
        return self.bytes_size >> 30

    def get_tebi_bytes(self) -> int:
        """Return the number of whole tebibytes."""
        return self.bytes_size >> 40

    def __str__(self) -> str:
        for size, unit in _UNITS:
            if self.bytes_size and self.bytes_size % size == 0:
                return f"{self.bytes_size // size} {unit}"
        return f"{self.bytes_size} bytes"


def _no_resources(method: str) -> NoReturn:
    raise NeverSupportedError(
        f"SlotSharingGroup.Builder.{method}",
        "a slot is a Spark task, and Spark gives all tasks of an application the same resources; "
        "set spark.executor.memory, spark.executor.cores or spark.task.cpus instead",
    )


class _Builder:
    """Makes a SlotSharingGroup. It cannot have resources: Spark gives all slots the same ones."""

    def __init__(self, name: str) -> None:
        self._name = name

    def set_cpu_cores(self, cpu_cores: float) -> _Builder:
        """Not supported: set ``spark.task.cpus`` instead.

        Raises:
            NeverSupportedError: Always.

        >>> SlotSharingGroup.builder("heavy").set_cpu_cores(2.0)
        Traceback (most recent call last):
        ...
        firesteel.errors.NeverSupportedError: ...Spark gives all tasks of an application the same resources...
        """
        _no_resources("set_cpu_cores")

    def set_task_heap_memory(self, task_heap_memory: MemorySize) -> _Builder:
        """Not supported: set ``spark.executor.memory`` instead.

        Raises:
            NeverSupportedError: Always.

        >>> SlotSharingGroup.builder("heavy").set_task_heap_memory(MemorySize.of_mebi_bytes(64))
        Traceback (most recent call last):
        ...
        firesteel.errors.NeverSupportedError: ...
        """
        _no_resources("set_task_heap_memory")

    def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> _Builder:
        """Not supported: set ``spark.executor.memory`` instead.

        Raises:
            NeverSupportedError: Always.

        >>> SlotSharingGroup.builder("heavy").set_task_heap_memory_mb(64)
        Traceback (most recent call last):
        ...
        firesteel.errors.NeverSupportedError: ...
        """
        _no_resources("set_task_heap_memory_mb")

    def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> _Builder:
        """Not supported: set ``spark.executor.memory`` instead.

        Raises:
            NeverSupportedError: Always.

        >>> SlotSharingGroup.builder("heavy").set_task_off_heap_memory(MemorySize.of_mebi_bytes(64))
        Traceback (most recent call last):
        ...
        firesteel.errors.NeverSupportedError: ...
        """
        _no_resources("set_task_off_heap_memory")

    def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> _Builder:
        """Not supported: set ``spark.executor.memory`` instead.

        Raises:
            NeverSupportedError: Always.

        >>> SlotSharingGroup.builder("heavy").set_task_off_heap_memory_mb(64)
        Traceback (most recent call last):
        ...
        firesteel.errors.NeverSupportedError: ...
        """
        _no_resources("set_task_off_heap_memory_mb")

    def set_managed_memory(self, managed_memory: MemorySize) -> _Builder:
        """Not supported: set ``spark.executor.memory`` instead.

        Raises:
            NeverSupportedError: Always.

        >>> SlotSharingGroup.builder("heavy").set_managed_memory(MemorySize.of_mebi_bytes(64))
        Traceback (most recent call last):
        ...
        firesteel.errors.NeverSupportedError: ...
        """
        _no_resources("set_managed_memory")

    def set_managed_memory_mb(self, managed_memory_mb: int) -> _Builder:
        """Not supported: set ``spark.executor.memory`` instead.

        Raises:
            NeverSupportedError: Always.

        >>> SlotSharingGroup.builder("heavy").set_managed_memory_mb(64)
        Traceback (most recent call last):
        ...
        firesteel.errors.NeverSupportedError: ...
        """
        _no_resources("set_managed_memory_mb")

    def set_external_resource(self, name: str, value: float) -> _Builder:
        """Not supported: Spark gives all tasks of an application the same resources.

        Raises:
            NeverSupportedError: Always.

        >>> SlotSharingGroup.builder("heavy").set_external_resource("gpu", 1.0)
        Traceback (most recent call last):
        ...
        firesteel.errors.NeverSupportedError: ...
        """
        _no_resources("set_external_resource")

    def build(self) -> SlotSharingGroup:
        """Return the group."""
        return SlotSharingGroup(self._name)


@dataclass(frozen=True)
class SlotSharingGroup:
    """A name for operators that may share slots. Subtasks of different groups never share one.

    A group has no resources: Spark gives all slots the same ones.

    Args:
        name: The name of the group.

    >>> group = SlotSharingGroup.builder("heavy").build()
    >>> group.get_name()
    'heavy'
    >>> group.get_cpu_cores(), group.get_managed_memory(), group.get_external_resources()
    (None, None, {})
    >>> group.get_task_heap_memory(), group.get_task_off_heap_memory()
    (None, None)
    >>> mapped = env.from_collection([1]).map(abs).slot_sharing_group(group)
    """

    name: str

    Builder = _Builder

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("A slot sharing group needs a name")

    @staticmethod
    def builder(name: str) -> _Builder:
        """Return a builder.

        Args:
            name: The name of the group.
        """
        return _Builder(name)

    def get_name(self) -> str:
        """Return the name."""
        return self.name

    def get_managed_memory(self) -> MemorySize | None:
        """Return None: a group has no resources."""
        return None

    def get_task_heap_memory(self) -> MemorySize | None:
        """Return None: a group has no resources."""
        return None

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Return None: a group has no resources."""
        return None

    def get_cpu_cores(self) -> float | None:
        """Return None: a group has no resources."""
        return None

    def get_external_resources(self) -> dict[str, float]:
        """Return an empty dictionary: a group has no resources."""
        return {}
