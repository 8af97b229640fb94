"""Brings code to where tasks run: the user's files and requirements, and Firesteel itself."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from firesteel.errors import ConfigurationError
from firesteel.graph.job_settings import JobSettings, PythonRequirements
from firesteel.spark.session import is_local

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
