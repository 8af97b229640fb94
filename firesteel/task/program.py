"""A job as it travels to the slots."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from firesteel.graph.levels import Levels


@dataclass(frozen=True, slots=True)
class JobProgram:
    """The graph with the user's functions.

    ``segment_directory`` is None where driver and slots share no directory.
    """

    job_id: str
    job_name: str
    attempt: int
    levels: Levels
    job_parameters: dict[str, str] = field(default_factory=dict)
    segment_directory: str | None = None
    inline_threshold: int = 64 * 1024
    batch: bool = False


@dataclass(frozen=True, slots=True)
class PackedProgram:
    """The bytes, and the module search path that the driver had.

    What the driver can import by name, a slot on the same machine can import too.
    """

    job_id: str
    attempt: int
    search_path: tuple[str, ...]
    payload: bytes

    @staticmethod
    def pack(program: JobProgram) -> PackedProgram:
        return PackedProgram(
            program.job_id,
            program.attempt,
            tuple(entry for entry in sys.path if entry),
            cloudpickle.dumps(program, protocol=5),
        )

    def unpack(self) -> JobProgram:
        for entry in self.search_path:
            if entry not in sys.path:
                sys.path.append(entry)
        program: Any = cloudpickle.loads(self.payload)
        assert isinstance(program, JobProgram)
        return program
