"""What the environment decides for all operators that do not say it themselves."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.errors import InvalidProgramError

DEFAULT_JOB_NAME = "Flink Streaming Job"
DEFAULT_BUFFER_TIMEOUT = 100


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """Defaults for the generators. ``max_parallelism`` None: derived from each parallelism."""

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
