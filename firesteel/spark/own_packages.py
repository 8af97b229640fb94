"""Firesteel itself as files for executors on which it is not installed."""

from __future__ import annotations

import importlib
import shutil
import zipfile
from pathlib import Path

from firesteel.spark import executor_daemon

# Executors have pyspark and pyarrow. These packages are plain Python and travel with the job.
_OWN_PACKAGES = ("firesteel", "cloudpickle", "yaml")
#: The module that starts the worker daemon on an executor.
EXECUTOR_DAEMON = "firesteel_executor_daemon"


def zip_packages(target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for name in _OWN_PACKAGES:
            package = Path(str(importlib.import_module(name).__file__)).parent
            add_tree(archive, package, package.parent)
    return target


def add_tree(archive: zipfile.ZipFile, directory: Path, root: Path) -> None:
    """Add all files below a directory, with their paths relative to ``root``."""
    for file in sorted(directory.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            archive.write(file, file.relative_to(root))


def write_executor_files(directory: Path) -> list[Path]:
    """Write the files with which executors start the worker daemon."""
    packages = zip_packages(directory / executor_daemon.PACKAGES)
    daemon = directory / f"{EXECUTOR_DAEMON}.py"
    shutil.copyfile(executor_daemon.__file__, daemon)
    return [packages, daemon]
