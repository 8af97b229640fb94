"""Brings archives and cached files to where tasks run."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext

from firesteel.datastream.connectors.file_system.storage import open_file, qualify
from firesteel.errors import ConfigurationError
from firesteel.graph.job_settings import CachedFile, JobSettings
from firesteel.spark.shipping import zip_directory
from firesteel.task.job_resources import JobFile, JobResources

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
