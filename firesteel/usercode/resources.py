"""Archives and cached files of a job, and their local paths on the machine of a task."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file that is sent with the job. ``path`` is its path in the driver.

    For an archive, ``name`` is the directory into which it is unpacked. For a cached file, ``name``
    is the name that functions use, and ``file_name`` is its name on disk, whose extension may
    matter. A file with ``unpack`` is a zip file.
    """

    path: str
    name: str
    file_name: str = ""
    unpack: bool = False
    executable: bool = False


@dataclass(frozen=True, slots=True)
class PlacedResources:
    """Local paths of a job's files. ``working_directory`` has the unpacked archives, or is None."""

    working_directory: str | None = None
    cached_files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobResources:
    archives: tuple[JobFile, ...] = ()
    cached_files: tuple[JobFile, ...] = ()

    def place(self, directory: Path, locate: Callable[[str], Path]) -> PlacedResources:
        """Put all files into ``directory``, unless a different task on this machine has done so.

        ``locate`` returns the local path of a file of the driver.
        """
        if not self.archives and not self.cached_files:
            return PlacedResources()
        if not directory.exists():
            self._make(directory, locate)
        return PlacedResources(
            str(directory / "work") if self.archives else None,
            {
                file.name: str(_cached_path(directory, number, file))
                for number, file in enumerate(self.cached_files)
            },
        )

    def _make(self, directory: Path, locate: Callable[[str], Path]) -> None:
        """Create all files or no file, because tasks of several slots may run this concurrently."""
        unfinished = Path(tempfile.mkdtemp(prefix=f"{directory.name}-", dir=directory.parent))
        try:
            for archive in self.archives:
                extract(locate(archive.path), unfinished / "work" / archive.name)
            for number, file in enumerate(self.cached_files):
                _place_cached(locate(file.path), _cached_path(unfinished, number, file), file)
            with contextlib.suppress(OSError):  # a different task was faster
                unfinished.rename(directory)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def _cached_path(directory: Path, number: int, file: JobFile) -> Path:
    return directory / "cache" / str(number) / file.file_name


def _place_cached(source: Path, target: Path, file: JobFile) -> None:
    target.parent.mkdir(parents=True)
    if file.unpack:
        extract(source, target)
        return
    shutil.copyfile(source, target)
    if file.executable:
        target.chmod(0o755)


def extract(archive: Path, target: Path) -> None:
    """Unpack a zip file with its permissions and symbolic links, which virtual environments need."""
    target.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive) as source:
        for entry in source.infolist():
            path = source.extract(entry, target)
            mode = entry.external_attr >> 16
            if stat.S_ISLNK(mode):
                link = source.read(entry).decode()
                os.unlink(path)
                os.symlink(link, path)
            elif mode and not entry.is_dir():
                os.chmod(path, stat.S_IMODE(mode))
