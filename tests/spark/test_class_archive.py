"""The archive of Java classes: written once, by the second program, and used by later ones."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firesteel.spark.class_archive import ClassArchive
from firesteel.spark.java import java_environment

_JAVA = Path(sys.executable)


def test_the_second_program_is_to_write_it(tmp_path: Path) -> None:
    first = ClassArchive(_JAVA, tmp_path / "cache")
    assert first.java_options() == ()
    assert not first.is_wanted
    second = ClassArchive(_JAVA, tmp_path / "cache")
    assert "-XX:+RecordDynamicDumpInfo" in second.java_options()
    assert second.is_wanted
    second.file.write_bytes(b"classes")
    third = ClassArchive(_JAVA, tmp_path / "cache")
    assert f"-XX:SharedArchiveFile={second.file}" in third.java_options()
    assert not third.is_wanted


def test_each_java_has_its_own(tmp_path: Path) -> None:
    other = tmp_path / "java"
    other.write_text("#!/bin/sh")
    assert ClassArchive(_JAVA, tmp_path).file != ClassArchive(other, tmp_path).file
    before = ClassArchive(other, tmp_path).file
    os.utime(other, ns=(1, 1))
    assert ClassArchive(other, tmp_path).file != before, "a new version in the same place"


def test_a_directory_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for _ in range(2):
        assert ClassArchive(_JAVA, file / "cache").java_options() == ()


def test_a_user_without_a_home_directory_has_no_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    for _ in range(2):
        assert ClassArchive(_JAVA).java_options() == ()


class _Session:
    """A session whose JVM writes ``text`` as archive, or cannot write one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, text: bytes | None) -> None:
        def dump(_: object, file: Path) -> None:
            if text is None:
                raise OSError("the JVM cannot do it")
            file.write_bytes(text)

        monkeypatch.setattr("firesteel.spark.class_archive._dump", dump)


def _wanted(directory: Path) -> ClassArchive:
    ClassArchive(_JAVA, directory).java_options()
    archive = ClassArchive(_JAVA, directory)
    archive.java_options()
    return archive


def test_an_archive_is_whole_or_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    archive = _wanted(tmp_path)
    archive.write(_Session(monkeypatch, b"classes"))  # type: ignore[arg-type]
    assert archive.file.read_bytes() == b"classes"
    assert not list(tmp_path.glob("*.new"))


def test_a_java_that_cannot_write_it_is_asked_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _wanted(tmp_path).write(_Session(monkeypatch, None))  # type: ignore[arg-type]
    assert not list(tmp_path.glob("*.jsa"))
    later = ClassArchive(_JAVA, tmp_path)
    assert later.java_options() == ()
    assert not later.is_wanted


def test_archives_that_nobody_uses_are_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old, used = tmp_path / "spark-old.jsa", tmp_path / "spark-used.jsa"
    for file, days in ((old, 100), (used, 10)):
        file.touch()
        then = time.time() - days * 24 * 3600
        os.utime(file, (then, then))
    _wanted(tmp_path).write(_Session(monkeypatch, b"classes"))  # type: ignore[arg-type]
    assert not old.exists()
    assert used.exists()


def test_only_sparks_own_jvm_gets_the_options(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    java.chmod(0o755)

    def start(*arguments: str) -> str:
        launcher = Path(os.environ["JAVA_HOME"], "bin", "java")
        return subprocess.run(
            [launcher, *arguments], capture_output=True, text=True, check=True
        ).stdout

    with java_environment(java, ["-XX:SharedArchiveFile=/a place/*.jsa", "-Xlog:disable"]):
        own = start("-cp", "a b", "org.apache.spark.deploy.SparkSubmit", "shell")
        other = start("org.apache.spark.launcher.Main", "shell")
    assert own == (
        "-XX:SharedArchiveFile=/a place/*.jsa|-Xlog:disable|-cp|a b|"
        "org.apache.spark.deploy.SparkSubmit|shell|"
    )
    assert other == "org.apache.spark.launcher.Main|shell|"
