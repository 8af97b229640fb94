"""Operators that share slots, and those that must not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from firesteel.errors import NeverSupportedError

__all__ = ["MemorySize", "SlotSharingGroup"]

_UNITS = ((1 << 40, "tb"), (1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb"))


@dataclass(frozen=True, order=True)
class MemorySize:
    """A number of bytes.

    >>> str(MemorySize.of_mebi_bytes(64))
    '64 mb'
    """

    bytes_size: int = 0

    def __post_init__(self) -> None:
        if self.bytes_size < 0:
            raise ValueError(f"A memory size is not below 0, but {self.bytes_size} bytes is")

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        return MemorySize(mebi_bytes << 20)

    def get_bytes(self) -> int:
        return self.bytes_size

    def get_kibi_bytes(self) -> int:
        return self.bytes_size >> 10

    def get_mebi_bytes(self) -> int:
        return self.bytes_size >> 20

    def get_gibi_bytes(self) -> int:
        return self.bytes_size >> 30

    def get_tebi_bytes(self) -> int:
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
    """Makes a SlotSharingGroup."""

    def __init__(self, name: str) -> None:
        self._name = name

    def set_cpu_cores(self, cpu_cores: float) -> _Builder:
        _no_resources("set_cpu_cores")

    def set_task_heap_memory(self, task_heap_memory: MemorySize) -> _Builder:
        _no_resources("set_task_heap_memory")

    def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> _Builder:
        _no_resources("set_task_heap_memory_mb")

    def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> _Builder:
        _no_resources("set_task_off_heap_memory")

    def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> _Builder:
        _no_resources("set_task_off_heap_memory_mb")

    def set_managed_memory(self, managed_memory: MemorySize) -> _Builder:
        _no_resources("set_managed_memory")

    def set_managed_memory_mb(self, managed_memory_mb: int) -> _Builder:
        _no_resources("set_managed_memory_mb")

    def set_external_resource(self, name: str, value: float) -> _Builder:
        _no_resources("set_external_resource")

    def build(self) -> SlotSharingGroup:
        return SlotSharingGroup(self._name)


@dataclass(frozen=True)
class SlotSharingGroup:
    """The name of a group. Subtasks of different groups never run in the same slot.

    >>> SlotSharingGroup.builder("heavy").build().get_name()
    'heavy'
    """

    name: str

    Builder = _Builder

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("A slot sharing group needs a name")

    @staticmethod
    def builder(name: str) -> _Builder:
        return _Builder(name)

    def get_name(self) -> str:
        return self.name

    def get_managed_memory(self) -> MemorySize | None:
        """None: resources are Spark's business."""
        return None

    def get_task_heap_memory(self) -> MemorySize | None:
        """None: resources are Spark's business."""
        return None

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """None: resources are Spark's business."""
        return None

    def get_cpu_cores(self) -> float | None:
        """None: resources are Spark's business."""
        return None

    def get_external_resources(self) -> dict[str, float]:
        """Empty: resources are Spark's business."""
        return {}
