from __future__ import annotations

import pytest

from firesteel.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from firesteel.errors import NeverSupportedError


def test_a_group_is_its_name() -> None:
    group = SlotSharingGroup.builder("heavy").build()
    assert group.get_name() == "heavy"
    assert group == SlotSharingGroup("heavy")
    assert group.get_cpu_cores() is None
    assert group.get_external_resources() == {}
    with pytest.raises(ValueError, match="name"):
        SlotSharingGroup.builder("").build()


@pytest.mark.parametrize(
    "setter",
    [
        "set_cpu_cores",
        "set_task_heap_memory",
        "set_task_heap_memory_mb",
        "set_task_off_heap_memory",
        "set_task_off_heap_memory_mb",
        "set_managed_memory",
        "set_managed_memory_mb",
    ],
)
def test_resources_are_refused_with_a_hint(setter: str) -> None:
    with pytest.raises(NeverSupportedError, match=rf"{setter}.*spark\.executor"):
        getattr(SlotSharingGroup.builder("heavy"), setter)(1)


def test_external_resources_are_refused_too() -> None:
    with pytest.raises(NeverSupportedError):
        SlotSharingGroup.builder("heavy").set_external_resource("gpu", 1.0)


def test_memory_sizes() -> None:
    size = MemorySize.of_mebi_bytes(2048)
    assert size.get_bytes() == 2 << 30
    assert size.get_kibi_bytes() == 2 << 20
    assert size.get_mebi_bytes() == 2048
    assert size.get_gibi_bytes() == 2
    assert size.get_tebi_bytes() == 0
    assert str(size) == "2 gb"
    assert str(MemorySize(bytes_size=1500)) == "1500 bytes"
    assert str(MemorySize(0)) == "0 bytes"
    assert MemorySize(1) < MemorySize(2)
    assert MemorySize(1) == MemorySize(1)
    with pytest.raises(ValueError, match="must not be negative"):
        MemorySize(-1)
