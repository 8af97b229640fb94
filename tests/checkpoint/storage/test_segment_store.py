"""Segments are files in checkpoint storage. Small ones are stored inside their handles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.checkpoint.storage.segment_store import StorageSegmentStore
from firesteel.checkpoint.storage.storage import Storage, open_storage
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.state.changelog import CorruptSegmentError, Segment, with_segment
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend


def test_large_segments_are_files_and_small_ones_are_not(storage: Storage) -> None:
    store = StorageSegmentStore(storage.at("shared"), inline_threshold=10)
    small = store.write([b"01234", b"56789"], epoch=1, full=False)
    together = store.write([b"0"], epoch=1, full=False, inline_bytes=10)
    large = store.write(iter([b"01234", b"56789", b"a"]), epoch=2, full=True)
    assert (small.path, together.inline, large.inline) == (None, None, None)
    assert len(storage.list_files()) == 2
    assert [store.read(segment) for segment in (small, together, large)] == [
        b"0123456789",
        b"0",
        b"0123456789a",
    ]


def test_two_attempts_never_write_the_same_file(local: Storage) -> None:
    store = StorageSegmentStore(local, inline_threshold=0)
    first, second = (store.write([b"x"], epoch=1, full=False) for _ in range(2))
    assert first.path != second.path


def test_without_a_storage_everything_is_inline() -> None:
    store = StorageSegmentStore(None, inline_threshold=0)
    assert store.read(store.write([b"x" * 1000], epoch=1, full=True)) == b"x" * 1000


def test_segments_of_another_directory_can_be_read(s3: FileSystemOptions, tmp_path: Path) -> None:
    old = StorageSegmentStore(open_storage(str(tmp_path)), 0)
    older = StorageSegmentStore(open_storage("s3://checkpoints/older", s3), 0)
    new = StorageSegmentStore(open_storage("s3://checkpoints/new", s3), 0, s3)
    for store in (old, older):
        assert new.read(store.write([b"state"], epoch=1, full=True)) == b"state"


def test_damage_is_named(local: Storage) -> None:
    store = StorageSegmentStore(local, inline_threshold=0)
    segment = store.write([b"state"], epoch=1, full=True)
    assert segment.path is not None
    Path(segment.path).write_bytes(b"stote")
    with pytest.raises(CorruptSegmentError, match=f"epoch 1 is damaged: {segment.path}"):
        store.read(segment)


def test_a_missing_file_is_named(local: Storage) -> None:
    store = StorageSegmentStore(local, inline_threshold=0)
    segment = store.write([b"state"], epoch=3, full=True)
    local.delete_directory()
    with pytest.raises(
        CorruptSegmentError, match=r"epoch 3 is missing: there is no file .*segment-3"
    ):
        store.read(segment)


def test_a_payload_that_breaks_off_leaves_nothing(storage: Storage) -> None:
    def payload() -> Iterator[bytes]:
        yield b"0123456789"
        raise ZeroDivisionError

    store = StorageSegmentStore(storage, inline_threshold=0)
    with pytest.raises(ZeroDivisionError):
        store.write(payload(), epoch=1, full=True)
    assert storage.list_files() == []


def test_files_of_a_backend_are_kept_and_come_back(storage: Storage, tmp_path: Path) -> None:
    store = StorageSegmentStore(storage.at("shared"), inline_threshold=0)
    source = tmp_path / "000007.sst"
    source.write_bytes(b"sorted" * 1000)
    kept = store.write_file(source)
    assert (kept.name, kept.inline) == ("000007.sst", None)
    store.read_file(kept, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    inline = StorageSegmentStore(None, inline_threshold=0).write_file(source)
    store.read_file(inline, tmp_path / "other")
    assert (tmp_path / "other").read_bytes() == source.read_bytes()


def test_a_backend_seals_and_restores_through_it(storage: Storage) -> None:
    store = StorageSegmentStore(storage.at("shared"), inline_threshold=100)
    state = HashMapKeyedStateBackend()
    segments: list[Segment] = []
    for epoch in range(1, 6):
        for key in range(epoch * 10):
            state.value_table("counts").put(key, epoch)
        for segment in state.seal(epoch, store):
            segments = with_segment(segments, segment)
        state.confirm()
    restored = HashMapKeyedStateBackend()
    restored.restore(segments, store)
    assert restored.snapshot() == state.snapshot()
    assert any(segment.path is not None for segment in segments)
