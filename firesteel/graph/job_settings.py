"""What a job needs to know beyond its graph. It stays in the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firesteel.graph.graph_settings import DEFAULT_BUFFER_TIMEOUT

if TYPE_CHECKING:
    from firesteel.common.configuration import Configuration
    from firesteel.datastream.execution_mode import RuntimeExecutionMode


@dataclass(frozen=True, slots=True)
class PythonRequirements:
    """A requirements.txt, and a directory with the packages for machines without a network."""

    path: str
    cache_directory: str | None = None


@dataclass(frozen=True, slots=True)
class PythonArchive:
    """A zip file that becomes the directory ``target`` in the working directory of the tasks."""

    path: str
    target: str


@dataclass(frozen=True, slots=True)
class CachedFile:
    """A file or directory that functions find under ``name``."""

    path: str
    name: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class JobSettings:
    """``runtime_mode`` is BATCH or STREAMING, AUTOMATIC has been decided.

    ``bounded`` says whether all sources end by themselves.
    """

    job_name: str
    configuration: Configuration
    runtime_mode: RuntimeExecutionMode
    bounded: bool
    buffer_timeout: int = DEFAULT_BUFFER_TIMEOUT
    python_files: tuple[str, ...] = ()
    requirements: PythonRequirements | None = None
    python_archives: tuple[PythonArchive, ...] = ()
    cached_files: tuple[CachedFile, ...] = ()
