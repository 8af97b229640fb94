"""A job on its way from a client to a dispatcher: a zip file.

It has the manifest, the packed program, and the files that travel with the job. The manifest is
JSON: a dispatcher reads it without the modules of the program, and unpickles nothing.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Self

from firesteel.errors import InvalidProgramError
from firesteel.graph.settings import CachedFile, PythonArchive, PythonRequirements
from firesteel.protocol.program import PackedProgram
from firesteel.usercode import pickling
from firesteel.usercode.loading import PackedPart

MANIFEST, PROGRAM, FILES = "manifest.json", "program.pickle", "files"


def python_version() -> str:
    """Return the version of Python that pickled functions depend on, such as ``3.12``."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, slots=True)
class TravelingFiles:
    """Files of a job. Paths without a scheme are names in the zip file."""

    python_files: tuple[str, ...] = ()
    requirements: PythonRequirements | None = None
    archives: tuple[PythonArchive, ...] = ()
    cached_files: tuple[CachedFile, ...] = ()

    @staticmethod
    def from_json(document: dict[str, Any]) -> TravelingFiles:
        requirements = document["requirements"]
        return TravelingFiles(
            tuple(document["python_files"]),
            None if requirements is None else PythonRequirements(**requirements),
            tuple(PythonArchive(**archive) for archive in document["archives"]),
            tuple(CachedFile(**file) for file in document["cached_files"]),
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """Facts about a job that its dispatcher needs.

    ``description`` is a JobDescription as JSON. ``collected`` are the nodes whose records go back to
    the client.
    """

    job_id: str
    name: str
    firesteel: str
    python: str
    runtime_mode: str
    bounded: bool
    buffer_timeout: int
    has_dataframes: bool
    configuration: dict[str, str]
    description: dict[str, Any]
    collected: tuple[int, ...] = ()
    files: TravelingFiles = field(default_factory=TravelingFiles)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str | bytes) -> Manifest:
        """Read a manifest. Raises InvalidProgramError if it is none."""
        try:
            document = json.loads(text)
            return Manifest(
                **{
                    **document,
                    "collected": tuple(document["collected"]),
                    "files": TravelingFiles.from_json(document["files"]),
                }
            )
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidProgramError(
                f"The submission has no valid {MANIFEST}: {type(error).__name__}: {error}."
            ) from error


@dataclass(frozen=True, slots=True)
class ProgramParts:
    """The packed program, and the functions that the driver calls with DataFrames, by node."""

    program: PackedProgram
    driver_functions: dict[int, PackedPart] = field(default_factory=dict)


class SubmissionWriter:
    """Writes the zip file of a job. It is a context manager."""

    def __init__(self, stream: BinaryIO) -> None:
        self._archive = zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED)
        self._added = 0

    def add(self, path: Path) -> str:
        """Add a file or a directory, and return its name in the zip file."""
        place = PurePosixPath(FILES) / str(self._added) / path.name
        self._added += 1
        for file in _files_below(path):
            inside = place / file.relative_to(path).as_posix() if path.is_dir() else place
            self._archive.write(file, str(inside))
        return str(place)

    def finish(self, manifest: Manifest, parts: ProgramParts) -> None:
        self._archive.writestr(MANIFEST, manifest.to_json())
        self._archive.writestr(PROGRAM, pickling.dumps(parts))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()


def _files_below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for file in sorted(path.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file


def read_manifest(submission: Path) -> Manifest:
    """Read the manifest of a zip file. Raises InvalidProgramError if the file is no submission."""
    try:
        with zipfile.ZipFile(submission) as archive:
            return Manifest.from_json(archive.read(MANIFEST))
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise InvalidProgramError(
            f"This is not a job that a client of Firesteel has packed: {error}."
        ) from error


def unpack_submission(submission: Path, directory: Path) -> None:
    """Unpack a zip file into a directory. ``zipfile`` keeps all names within it."""
    with zipfile.ZipFile(submission) as archive:
        archive.extractall(directory)


def located(files: TravelingFiles, directory: Path) -> TravelingFiles:
    """Return the files with their paths below the directory that they were unpacked into."""

    def at(path: str) -> str:
        return str(directory / path) if path.startswith(f"{FILES}/") else path

    requirements = files.requirements
    if requirements is not None:
        cache = requirements.cache_directory
        requirements = PythonRequirements(
            at(requirements.path), None if cache is None else at(cache)
        )
    return TravelingFiles(
        tuple(at(path) for path in files.python_files),
        requirements,
        tuple(replace(archive, path=at(archive.path)) for archive in files.archives),
        tuple(replace(file, path=at(file.path)) for file in files.cached_files),
    )
