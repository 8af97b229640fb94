"""Files appear whole or not at all, on disks and on object stores."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from firesteel.checkpoint.storage.storage import (
    CorruptFileError,
    Storage,
    StorageError,
    is_temporary,
    open_storage,
)
from firesteel.errors import ConfigurationError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.testing import StorageFault, StorageFaultKind, with_faults

_LARGE = bytes(range(256)) * 50_000


@pytest.mark.parametrize("payload", [b"", b"small", _LARGE], ids=["empty", "small", "12 MB"])
def test_what_is_written_is_read(storage: Storage, payload: bytes) -> None:
    facts = storage.write("chk-1/data", payload)
    assert storage.read("chk-1/data", facts) == payload
    assert storage.size("chk-1/data") == len(payload)


def test_a_file_is_replaced_listed_and_deleted(storage: Storage) -> None:
    assert storage.list_files() == []
    storage.write("a/b/one", b"1")
    storage.write("a/two", b"22")
    storage.write("a/two", b"333")
    assert [(file.path, file.size) for file in storage.list_files()] == [
        ("a/b/one", 1),
        ("a/two", 3),
    ]
    storage.delete("a/two")
    storage.delete("a/two")
    assert not storage.exists("a/two")
    assert storage.exists("a/b/one")
    storage.delete_directory("a")
    storage.delete_directory("a")
    assert storage.list_files() == []


def test_a_directory_below_is_a_storage_with_the_same_files(storage: Storage) -> None:
    below = storage.at("job").at("chk-7")
    below.write("_metadata", b"x")
    assert storage.read("job/chk-7/_metadata") == b"x"
    assert below.parent.parent == storage
    assert storage.name_of(below.location_of("_metadata")) == "job/chk-7/_metadata"
    assert below.name_of(storage.location_of("other")) is None
    assert below.name == "chk-7"


def test_damage_is_found_by_size_and_by_checksum(storage: Storage) -> None:
    facts = storage.write("data", b"0123456789")
    storage.write("data", b"01234")
    with pytest.raises(CorruptFileError, match=r"data is damaged: it should have 10 bytes.* has 5"):
        storage.read("data", facts)
    storage.write("data", b"0123456788")
    with pytest.raises(CorruptFileError, match="its checksum does not match"):
        storage.read("data", facts)


def test_a_missing_file_is_an_error_that_says_so(storage: Storage) -> None:
    with pytest.raises(
        StorageError, match=r"cannot read .*nothing: there is no such file"
    ) as caught:
        storage.read("nothing")
    assert caught.value.missing
    assert pickle.loads(pickle.dumps(caught.value)).missing


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../other", "a/../../b", "a//b", "./a"])
def test_no_name_leads_out_of_a_storage(local: Storage, name: str) -> None:
    with pytest.raises(ValueError, match="not a valid name within"):
        local.write(name, b"x")
    with pytest.raises(ValueError, match="not a valid name within"):
        local.at(name)


@pytest.mark.parametrize("operation", ["write", "sync", "rename"])
@pytest.mark.parametrize("kind", [StorageFaultKind.FAIL, StorageFaultKind.FULL])
def test_a_failed_write_leaves_what_was_there_and_nothing_else(
    local: Storage, operation: str, kind: StorageFaultKind
) -> None:
    local.write("_metadata", b"old")
    faulty, file_system = with_faults(local, StorageFault(kind, operation))
    with pytest.raises(StorageError, match=r"cannot write .*_metadata"):
        faulty.write("_metadata", b"new and longer")
    assert local.read("_metadata") == b"old"
    assert [file.path for file in local.list_files()] == ["_metadata"]
    file_system.heal()
    faulty.write("_metadata", b"new")
    assert local.read("_metadata") == b"new"


def test_half_an_object_does_not_pass_for_a_whole_one(
    s3: FileSystemOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage("s3://checkpoints/half", s3)
    monkeypatch.setattr(type(storage.file_system), "size", lambda self, path: 3)
    with pytest.raises(
        StorageError, match=r"5 bytes were written to .*, but the store has 3 bytes"
    ):
        storage.write("data", b"12345")


def test_what_a_killed_writer_left_behind_can_be_told(local: Storage) -> None:
    faulty, _ = with_faults(
        local,
        StorageFault(StorageFaultKind.FAIL, "rename"),
        StorageFault(StorageFaultKind.FAIL, "delete"),
    )
    with pytest.raises(StorageError):
        faulty.write("data", b"x")
    (left,) = local.list_files()
    assert is_temporary(left.path)
    assert not is_temporary("data")


def test_faults_strike_the_call_they_name(local: Storage) -> None:
    waits: list[float] = []
    faulty, file_system = with_faults(
        local,
        StorageFault(StorageFaultKind.FAIL, "write", "*data*", call=2),
        StorageFault(StorageFaultKind.SLOW, "read", seconds=30),
        StorageFault(StorageFaultKind.LOST_ANSWER, "rename", "*/late"),
        sleep=waits.append,
    )
    faulty.write("data", b"1")
    with pytest.raises(StorageError, match="Input/output error"):
        faulty.write("data", b"2")
    faulty.write("data", b"3")
    assert faulty.read("data") == b"3"
    assert waits == [30]
    with pytest.raises(StorageError, match="timed out"):
        faulty.write("late", b"x")
    assert local.read("late") == b"x"
    assert ("read", str(Path(local.root) / "data")) in file_system.calls


@pytest.mark.parametrize(
    "kind", [StorageFaultKind.TRUNCATE, StorageFaultKind.FLIP_BIT], ids=lambda kind: kind.name
)
def test_silent_damage_is_found_when_the_file_is_read(
    local: Storage, kind: StorageFaultKind
) -> None:
    faulty, _ = with_faults(local, StorageFault(kind))
    facts = faulty.write("data", b"0123456789")
    with pytest.raises(CorruptFileError):
        local.read("data", facts)


class TestLocations:
    def test_local_paths(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert open_storage("here").location == str(tmp_path / "here")
        assert open_storage(f"file://{tmp_path}/a%20b").location == str(tmp_path / "a b")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert open_storage("~/x").location == str(tmp_path / "x")

    def test_object_stores_with_their_options_in_the_location(self, s3: FileSystemOptions) -> None:
        address = (s3.s3_endpoint or "").removeprefix("http://")
        storage = open_storage(
            f"s3://test:secret@checkpoints/inline?endpoint_override={address}&scheme=http"
            "&region=us-east-1"
        )
        storage.write("data", b"x")
        assert open_storage("s3://checkpoints/inline", s3).read("data") == b"x"
        assert storage.location == "s3://checkpoints/inline"

    def test_secrets_are_not_shown(self, s3: FileSystemOptions) -> None:
        assert "secret" not in repr(s3)

    @pytest.mark.parametrize(
        ("location", "message"),
        [
            ("", "is empty"),
            ("s3:///path", "names no bucket"),
            ("nosuch://place/path", "cannot be reached"),
        ],
    )
    def test_wrong_ones_say_what_to_write(self, location: str, message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            open_storage(location)

    def test_a_bucket_that_does_not_exist_is_named(self, s3: FileSystemOptions) -> None:
        storage = open_storage("s3://no-such-bucket/x", s3)
        with pytest.raises(StorageError, match="no-such-bucket"):
            storage.write("data", b"x")
