"""Ships code and files to tasks: user code, requirements, files, and Firesteel itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from firesteel.errors import ConfigurationError
from firesteel.filesystems.file_systems import (
    FileSystemOptions,
    find_file_system,
    is_uri,
    qualify,
    without_password,
)
from firesteel.filesystems.settings import file_system_options
from firesteel.graph.settings import CachedFile, JobSettings, PythonArchive, PythonRequirements
from firesteel.spark.own_packages import add_tree, zip_packages
from firesteel.spark.session import is_local
from firesteel.usercode.resources import JobFile, JobResources

_shipped_to: set[str] = set()


def ship(context: SparkContext, settings: JobSettings, directory: Path, *, local: bool) -> None:
    """Put the code of a job on the search path of its tasks, before that of earlier jobs.

    Spark wants every file of an application to have a name of its own, so names begin with the job.
    """
    if not local:
        _ship_packages(context, directory)
    if settings.requirements is not None:
        install_requirements(settings.requirements, directory / "requirements")
        target = directory / f"{directory.name}-requirements.zip"
        context.addPyFile(str(zip_directory(directory / "requirements", target)))
    for name in reversed(settings.python_files):
        path = Path(name)
        if not path.exists():
            raise ConfigurationError(f"python.files: there is no file {name}", key="python.files")
        if path.is_dir():
            path = zip_directory(path, directory / f"{directory.name}-{path.name}.zip")
        context.addPyFile(str(path))


def ship_firesteel(session: SparkSession) -> None:
    """Put Firesteel on the search path of tasks that belong to no job."""
    if not is_local(session):
        with tempfile.TemporaryDirectory(prefix="firesteel-") as directory:
            _ship_packages(session.sparkContext, Path(directory))


def _ship_packages(context: SparkContext, directory: Path) -> None:
    if context.applicationId not in _shipped_to:
        context.addPyFile(str(zip_packages(directory / "firesteel-packages.zip")))
        _shipped_to.add(context.applicationId)


def zip_directory(directory: Path, target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        add_tree(archive, directory, directory)
    return target


def install_requirements(requirements: PythonRequirements, target: Path) -> None:
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
    """Collect the archives and cached files of a job, and ship them to other machines.

    Args:
        context: The Spark context that ships files.
        settings: The settings of the job.
        directory: A directory of the job's own.
        local: True if tasks see the files of the driver, so that nothing has to be shipped.
    """
    stage = _Stage(directory, file_system_options(settings.configuration))
    archives = [stage.archive(archive) for archive in settings.python_archives]
    cached = [stage.cached_file(file) for file in settings.cached_files]
    if local:
        return JobResources(tuple(archives), tuple(cached))
    return JobResources(
        tuple(stage.ship(file, context) for file in archives),
        tuple(stage.ship(file, context) for file in cached),
    )


class _Stage:
    """The files of a job before they travel: on the disk of the driver, each under its own name."""

    def __init__(self, directory: Path, options: FileSystemOptions) -> None:
        self._directory = directory
        self._options = options

    def archive(self, archive: PythonArchive) -> JobFile:
        path = self._on_disk(archive.path, _ARCHIVES)
        if not zipfile.is_zipfile(path):
            raise ConfigurationError(
                f"{_ARCHIVES}: {without_password(archive.path)} is not a zip file", key=_ARCHIVES
            )
        return JobFile(str(path), archive.target, unpack=True)

    def cached_file(self, file: CachedFile) -> JobFile:
        file_name = without_password(qualify(file.path)).rstrip("/").rpartition("/")[2]
        path = self._on_disk(file.path, _CACHED_FILES)
        is_directory = path.is_dir()
        if is_directory:
            path = zip_directory(path, self._new_place(f"{file_name}.zip"))
        return JobFile(
            str(path), file.name, file_name, unpack=is_directory, executable=file.executable
        )

    def ship(self, file: JobFile, context: SparkContext) -> JobFile:
        path = self._new_place(Path(file.path).name)
        shutil.copyfile(file.path, path)
        context.addFile(str(path))
        return replace(file, path=str(path))

    def _on_disk(self, path: str, key: str) -> Path:
        """Return the local path of a file that exists. A remote file is downloaded."""
        qualified = qualify(path)
        if is_uri(qualified):
            return self._download(qualified, key)
        if not os.path.exists(qualified):
            raise ConfigurationError(f"{key}: there is nothing at {path}", key=key)
        return Path(qualified)

    def _download(self, uri: str, key: str) -> Path:
        file_system, remote, plain = find_file_system(uri, self._options)
        target = self._new_place(remote.rpartition("/")[2])
        try:
            with file_system.open(remote) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file)
        except OSError as error:
            raise ConfigurationError(f"{key}: {plain} cannot be read: {error}", key=key) from error
        return target

    def _new_place(self, name: str) -> Path:
        """Return a path whose last name is unique across all jobs, as Spark requires."""
        staged = self._directory / "staged"
        staged.mkdir(exist_ok=True)
        return staged / f"{self._directory.name}-{len(list(staged.iterdir()))}-{name}"
