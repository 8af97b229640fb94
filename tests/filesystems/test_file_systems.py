"""The same operations on a local disk and on an object store."""

from __future__ import annotations

import gzip
import os
import uuid
from pathlib import Path

import pytest

from firesteel.errors import ConfigurationError
from firesteel.filesystems.file_systems import (
    FileSystemOptions,
    LocalFileSystem,
    Location,
    find_file_system,
    qualify,
    without_password,
)
from tests.power_failure import disk_below


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "local":
        return find_file_system(str(tmp_path))
    location = f"s3://checkpoints/{uuid.uuid4().hex}"
    return find_file_system(location, request.getfixturevalue("s3"))


def _write(place: Location, *names: str) -> None:
    for name in names:
        place.file_system.write(f"{place.path}/{name}", [name.encode(), b"\n", name.encode()])


def _names(place: Location, found: list[str]) -> list[str]:
    return sorted(path.removeprefix(f"{place.path}/") for path in found)


def _find(place: Location, pattern: str) -> list[str]:
    found = place.file_system.find(f"{place.path}/{pattern}")
    return _names(place, [f"{one.path}/" if one.is_directory else one.path for one in found])


def test_content(place: Location) -> None:
    _write(place, "a.txt")
    path = f"{place.path}/a.txt"
    assert place.file_system.read(path) == b"a.txt\na.txt"
    assert place.file_system.size(path) == 11
    with place.file_system.open(path) as file:
        file.seek(6)
        assert file.read() == b"a.txt"


def test_names_do_not_decide_about_compression(place: Location) -> None:
    path = f"{place.path}/a.gz"
    place.file_system.write(path, [gzip.compress(b"content")])
    assert gzip.decompress(place.file_system.read(path)) == b"content"
    with place.file_system.open(path) as file:
        assert gzip.decompress(file.read()) == b"content"


def test_what_is_not_there(place: Location) -> None:
    path = f"{place.path}/nothing"
    assert place.file_system.size(path) is None
    assert place.file_system.find(path) == []
    assert place.file_system.find(f"{path}/*") == []
    assert place.file_system.list_files(path) == []
    place.file_system.delete(path)
    place.file_system.delete_directory(path)
    with pytest.raises(FileNotFoundError):
        place.file_system.read(path)
    with pytest.raises(FileNotFoundError):
        place.file_system.open(path)


def test_all_files_below(place: Location) -> None:
    _write(place, "a.txt", "d/b.txt", "d/_c.txt", "d/.e/f.txt", "_g/h.txt")
    files = place.file_system.list_files(place.path)
    expected = ["_g/h.txt", "a.txt", "d/.e/f.txt", "d/_c.txt", "d/b.txt"]
    assert _names(place, [file.path for file in files]) == expected
    assert {file.size for file in files} == {11, 15, 17, 21}
    assert all(file.modified > 0 and not file.is_directory for file in files)
    visible = place.file_system.list_files(place.path, hidden=False)
    assert _names(place, [file.path for file in visible]) == ["a.txt", "d/b.txt"]


def test_paths_and_globs(place: Location) -> None:
    _write(place, "a.txt", "b.log", "d/b.txt", "d/e/c.txt", "f/b.txt", "f/[x].txt")
    assert _find(place, "a.txt") == ["a.txt"]
    assert _find(place, "d") == ["d/"]
    assert _find(place, "*.txt") == ["a.txt"]
    assert _find(place, "[ab].???") == ["a.txt", "b.log"]
    assert _find(place, "?") == ["d/", "f/"]
    assert _find(place, "*/b.txt") == ["d/b.txt", "f/b.txt"]
    assert _find(place, "d/*/*.txt") == ["d/e/c.txt"]
    assert _find(place, "f/[x].txt") == ["f/[x].txt"]
    assert _find(place, "*.csv") == []


def test_a_link_back_into_the_tree_is_followed_once(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.txt").write_text("a")
    os.symlink(tmp_path, tmp_path / "d" / "loop")
    os.symlink(tmp_path / "nowhere", tmp_path / "broken")
    files = find_file_system(str(tmp_path)).file_system.list_files(str(tmp_path))
    assert [file.path for file in files] == [str(tmp_path / "d" / "a.txt")]


def test_locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for location in ("x", str(tmp_path / "x"), f"file://{tmp_path}/x", f"file:{tmp_path}/x"):
        assert find_file_system(location)[1:] == (str(tmp_path / "x"), str(tmp_path / "x"))
        assert qualify(location) == str(tmp_path / "x")
    assert find_file_system("s3a://bucket/x/")[1:] == ("bucket/x", "s3a://bucket/x")
    assert qualify("s3://bucket/x") == "s3://bucket/x"


@pytest.mark.parametrize("location", ["", "s3://", "s3://key:hush@/path", "x9://u:hush@h/path"])
def test_locations_that_are_none(location: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        find_file_system(location)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("/local/a@b", "/local/a@b"),
        ("s3://bucket/path", "s3://bucket/path"),
        ("s3://key:hush@bucket/path?secret_key=hush", "s3://bucket/path"),
        ("hdfs://user:hush@host:8020/path", "hdfs://user@host:8020/path"),
        ("abfs://container@account/path", "abfs://container@account/path"),
    ],
)
def test_passwords_are_not_shown(uri: str, shown: str) -> None:
    assert without_password(uri) == shown


def test_secrets_are_not_in_the_text_of_options() -> None:
    options = FileSystemOptions("key", "hush", "hush")
    assert "hush" not in repr(options)


def test_a_synced_file_survives_with_the_new_directories_above_it(tmp_path: Path) -> None:
    with disk_below(tmp_path) as disk:
        file_system = LocalFileSystem()
        for name in ("a/b/1", "a/b/2", "a/c/3"):
            file_system.write(f"{tmp_path}/{name}", [name.encode()])
            file_system.sync(f"{tmp_path}/{name}")
        file_system.delete_directory(f"{tmp_path}/a/c")
        # A directory that is created again is new again.
        file_system.write(f"{tmp_path}/a/c/4", [b"a/c/4"])
        file_system.sync(f"{tmp_path}/a/c/4")
        file_system.write(f"{tmp_path}/a/d/5", [b"lost"])
        disk.fail()
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"a/b/1", "a/b/2", "a/c/4"}
    assert all((tmp_path / name).read_text() == name for name in found)


def test_known_directories_are_not_synced_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_system = LocalFileSystem()
    file_system.write(f"{tmp_path}/a/1", [b"1"])
    file_system.sync(f"{tmp_path}/a/1")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    file_system.sync(f"{tmp_path}/a/1")
    assert len(synced) == 2
