"""Brings code to where tasks run: the user's files and requirements, and Firesteel itself."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from firesteel.connectors.files.storage import open_file, qualify
from firesteel.errors import ConfigurationError
from firesteel.graph.settings import CachedFile, JobSettings, PythonRequirements
from firesteel.spark.session import is_local
from firesteel.usercode.resources import JobFile, JobResources

# Executors have pyspark and pyarrow; these are plain Python and travel with the job.
_OWN_PACKAGES = ("firesteel", "cloudpickle", "yaml")

_shipped_to: set[str] = set()


def ship(context: SparkContext, settings: JobSettings, directory: Path, *, local: bool) -> None:
    """Put everything on the tasks' path. What a later job adds goes in front."""
    if not local:
        _ship_packages(context, directory)
    if settings.requirements is not None:
        _install(settings.requirements, directory / "requirements")
        context.addPyFile(
            str(zip_directory(directory / "requirements", directory / "requirements.zip"))
        )
    for name in reversed(settings.python_files):
        path = Path(name)
        if not path.exists():
            raise ConfigurationError(f"python.files: there is no file {name}", key="python.files")
        if path.is_dir():
            path = zip_directory(path, directory / f"{path.name}.zip")
        context.addPyFile(str(path))


def ship_firesteel(session: SparkSession) -> None:
    """For tasks outside of a job."""
    if not is_local(session):
        with tempfile.TemporaryDirectory(prefix="firesteel-") as directory:
            _ship_packages(session.sparkContext, Path(directory))


def _ship_packages(context: SparkContext, directory: Path) -> None:
    if context.applicationId not in _shipped_to:
        context.addPyFile(str(_zip_packages(directory / "firesteel-packages.zip")))
        _shipped_to.add(context.applicationId)


def _zip_packages(target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for name in _OWN_PACKAGES:
            package = Path(str(importlib.import_module(name).__file__)).parent
            _add_tree(archive, package, package.parent)
    return target


def zip_directory(directory: Path, target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        _add_tree(archive, directory, directory)
    return target


def _add_tree(archive: zipfile.ZipFile, directory: Path, root: Path) -> None:
    for file in sorted(directory.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            archive.write(file, file.relative_to(root))


def _install(requirements: PythonRequirements, target: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
    command += ["--disable-pip-version-check", "-r", requirements.path]
    if requirements.cache_directory is not None:
        command += ["--no-index", "--find-links", requirements.cache_directory]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ConfigurationError(
            f"python.requirements: pip could not install {requirements.path}:\n{result.stderr}",
            key="python.requirements",
        )


_ARCHIVES, _CACHED_FILES = "python.archives", "pipeline.cached-files"


def stage_resources(
    context: SparkContext, settings: JobSettings, directory: Path, *, local: bool
) -> JobResources:
    """``directory`` belongs to the job. ``local``: tasks see the driver's files."""
    archives = [
        JobFile(_archive(archive.path), archive.target, unpack=True)
        for archive in settings.python_archives
    ]
    cached = [_cached_file(file, directory) for file in settings.cached_files]
    if local:
        return JobResources(tuple(archives), tuple(cached))
    return JobResources(_ship(context, archives, directory), _ship(context, cached, directory))


def _archive(path: str) -> str:
    found = _existing(path, _ARCHIVES)
    if not zipfile.is_zipfile(found):
        raise ConfigurationError(f"{_ARCHIVES}: {path} is not a zip file", key=_ARCHIVES)
    return found


def _cached_file(file: CachedFile, directory: Path) -> JobFile:
    path = qualify(file.path)
    file_name = path.rstrip("/").rpartition("/")[2]
    if "://" in path:
        path = _download(path, _new_place(directory, file_name))
    path = _existing(path, _CACHED_FILES)
    unpack = Path(path).is_dir()
    if unpack:
        path = str(zip_directory(Path(path), _new_place(directory, f"{file_name}.zip")))
    return JobFile(path, file.name, file_name, unpack=unpack, executable=file.executable)


def _existing(path: str, key: str) -> str:
    found = Path(path).expanduser().absolute()
    if not found.exists():
        raise ConfigurationError(f"{key}: there is nothing at {path}", key=key)
    return str(found)


def _download(uri: str, target: Path) -> str:
    try:
        with open_file(uri) as source, target.open("wb") as file:
            shutil.copyfileobj(source, file)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{_CACHED_FILES}: {uri} cannot be read: {error}", key=_CACHED_FILES
        ) from error
    return str(target)


def _ship(context: SparkContext, files: Iterable[JobFile], directory: Path) -> tuple[JobFile, ...]:
    shipped = []
    for file in files:
        path = _new_place(directory, Path(file.path).name)
        shutil.copyfile(file.path, path)
        context.addFile(str(path))
        shipped.append(replace(file, path=str(path)))
    return tuple(shipped)


def _new_place(directory: Path, name: str) -> Path:
    """A name that is unique across all jobs: Spark knows files by their last names only."""
    staged = directory / "staged"
    staged.mkdir(exist_ok=True)
    return staged / f"{directory.name}-{len(list(staged.iterdir()))}-{name}"
