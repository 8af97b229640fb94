"""Settings of a job besides its graph. They stay in the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firesteel.errors import InvalidProgramError

if TYPE_CHECKING:
    from firesteel.common.configuration import Configuration
    from firesteel.datastream.execution_mode import RuntimeExecutionMode

DEFAULT_JOB_NAME = "Flink Streaming Job"
DEFAULT_BUFFER_TIMEOUT = 100


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """Defaults for the graph generators.

    ``max_parallelism``: None derives it from the parallelism of each operator.
    """

    job_name: str = DEFAULT_JOB_NAME
    parallelism: int = 1
    max_parallelism: int | None = None
    buffer_timeout: int = DEFAULT_BUFFER_TIMEOUT
    chaining_enabled: bool = True
    chain_operators_with_different_max_parallelism: bool = True
    auto_generate_uids: bool = True


def check_buffer_timeout(timeout_millis: object) -> int:
    if isinstance(timeout_millis, bool) or not isinstance(timeout_millis, int):
        raise InvalidProgramError(f"The buffer timeout must be an int, not {timeout_millis!r}.")
    if timeout_millis < -1:
        raise InvalidProgramError(
            f"The buffer timeout must be at least -1 milliseconds, not {timeout_millis}."
        )
    return timeout_millis


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
    """Settings of one execution.

    ``runtime_mode``: BATCH or STREAMING. AUTOMATIC has been replaced by one of them.
    ``bounded``: all sources end by themselves.
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

    @property
    def is_batch(self) -> bool:
        return self.runtime_mode.name == "BATCH"
