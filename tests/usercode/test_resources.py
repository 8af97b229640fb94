"""Placing archives and cached files on the machine of a task."""

from __future__ import annotations

import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from firesteel.common.distributed_cache import DistributedCache
from firesteel.errors import InvalidProgramError
from firesteel.usercode.resources import JobFile, JobResources


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A zip file with a directory, a program, and a link to it."""
    path = tmp_path / "tools.zip"
    program = zipfile.ZipInfo("bin/run")
    program.external_attr = 0o100755 << 16
    link = zipfile.ZipInfo("bin/latest")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(program, "#!/bin/sh\n")
        file.writestr(link, "run")
        file.writestr("data/words.txt", "to be")
    return path


def test_archives_are_unpacked_with_permissions_and_links(archive, tmp_path):
    resources = JobResources(archives=(JobFile(str(archive), "mine/tools", unpack=True),))
    placed = resources.place(tmp_path / "place", Path)
    assert placed.working_directory is not None
    tools = Path(placed.working_directory) / "mine" / "tools"
    assert (tools / "data" / "words.txt").read_text() == "to be"
    assert os.access(tools / "bin" / "run", os.X_OK)
    assert not os.access(tools / "data" / "words.txt", os.X_OK)
    assert os.readlink(tools / "bin" / "latest") == "run"


def test_a_link_in_an_archive_leads_nowhere_outside_before_it_is_made(tmp_path):
    path = tmp_path / "bad.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("../escaped.txt", "x")
    resources = JobResources(archives=(JobFile(str(path), "a", unpack=True),))
    placed = resources.place(tmp_path / "place", Path)
    assert placed.working_directory is not None
    assert not (Path(placed.working_directory) / "escaped.txt").exists()
    assert not (tmp_path / "escaped.txt").exists()


def test_cached_files_keep_their_file_name_and_may_become_executable(tmp_path):
    for name in ("model.onnx", "run.sh"):
        (tmp_path / name).write_text(name)
    resources = JobResources(
        cached_files=(
            JobFile(str(tmp_path / "model.onnx"), "model", "model.onnx"),
            JobFile(str(tmp_path / "run.sh"), "tool", "run.sh", executable=True),
        )
    )
    placed = resources.place(tmp_path / "place", Path)
    cache = DistributedCache(placed.cached_files)
    assert placed.working_directory is None
    assert Path(cache.get_file("model")).name == "model.onnx"
    assert Path(cache.get_file("model")).read_text() == "model.onnx"
    assert os.access(cache.get_file("tool"), os.X_OK)
    with pytest.raises(InvalidProgramError, match="'model', 'tool'"):
        cache.get_file("modell")


def test_a_cached_directory_is_unpacked(archive, tmp_path):
    file = JobFile(str(archive), "tools", "tools", unpack=True)
    placed = JobResources(cached_files=(file,)).place(tmp_path / "place", Path)
    assert (Path(placed.cached_files["tools"]) / "data" / "words.txt").exists()


def test_many_tasks_at_once_place_them_once_and_whole(archive, tmp_path):
    resources = JobResources(archives=(JobFile(str(archive), "tools", unpack=True),))
    place = tmp_path / "jobs" / "place"
    place.parent.mkdir()
    with ThreadPoolExecutor(8) as pool:
        placed = list(pool.map(lambda _: resources.place(place, Path), range(16)))
    assert len({found.working_directory for found in placed}) == 1
    assert list(place.parent.iterdir()) == [place]


def test_a_failure_leaves_nothing_behind(tmp_path):
    place = tmp_path / "jobs" / "place"
    place.parent.mkdir()
    file = JobFile("/nowhere", "a", "a")
    with pytest.raises(FileNotFoundError):
        JobResources(cached_files=(file,)).place(place, Path)
    assert list(place.parent.iterdir()) == []


def test_nothing_to_place_makes_nothing(tmp_path):
    assert JobResources().place(tmp_path / "place", Path).working_directory is None
    assert list(tmp_path.iterdir()) == []
