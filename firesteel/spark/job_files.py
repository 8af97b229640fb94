"""The private directory of one job: its program, its large state segments, Spark's files."""

from __future__ import annotations

import shutil
import zlib

from firesteel.common.configuration import Configuration
from firesteel.config import options
from firesteel.filesystems.scratch import ScratchDirectory
from firesteel.protocol.program import JobProgram, PackedProgram
from firesteel.usercode import pickling


class JobFiles:
    def __init__(self, job_id: str, configuration: Configuration) -> None:
        parent = configuration.get(options.WORKING_DIR)
        self._scratch = ScratchDirectory(f"job-{job_id[:8]}", parent)
        self.root = self._scratch.path
        self.segments = self.root / "segments"
        self.segments.mkdir()

    def spark_checkpoint(self, attempt: int) -> str:
        """Return the directory of Spark's own bookkeeping, which no other attempt uses."""
        return str(self.root / f"spark-{attempt}")

    def remove_spark_checkpoint(self, attempt: int) -> None:
        """Remove the bookkeeping of an attempt that has ended."""
        shutil.rmtree(self.spark_checkpoint(attempt), ignore_errors=True)

    def write_program(self, program: JobProgram) -> tuple[str, bool]:
        """Write the program, unless an earlier attempt with the same parallelism has written it.

        Returns:
            The path, and True if the file is new.
        """
        vertices = program.levels.job_graph.vertices
        parallelism = ",".join(str(vertex.parallelism) for vertex in vertices)
        version = f"{zlib.crc32(parallelism.encode()):08x}"
        path = self.root / f"program-{program.job_id}-{version}.pickle"
        is_new = not path.exists()
        if is_new:
            path.write_bytes(pickling.dumps(PackedProgram.pack(program)))
        return str(path), is_new

    def remove(self) -> None:
        self._scratch.remove()
