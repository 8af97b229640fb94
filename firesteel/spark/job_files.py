"""The private directory of one job: its program, its large state segments, Spark's files."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from firesteel.common.configuration import Configuration
from firesteel.config import options
from firesteel.protocol.program import JobProgram, PackedProgram
from firesteel.usercode import pickling


class JobFiles:
    def __init__(self, job_id: str, configuration: Configuration) -> None:
        parent = configuration.get(options.WORKING_DIR)
        if parent is not None:
            Path(parent).mkdir(parents=True, exist_ok=True)
        self.root = Path(tempfile.mkdtemp(prefix=f"firesteel-job-{job_id[:8]}-", dir=parent))
        self.segments = self.root / "segments"
        self.segments.mkdir()

    def spark_checkpoint(self, attempt: int) -> str:
        """Return the directory of Spark's own bookkeeping, which no other attempt uses."""
        return str(self.root / f"spark-{attempt}")

    def write_program(self, program: JobProgram) -> str:
        path = self.root / f"program-{program.job_id}-{program.attempt}.pickle"
        path.write_bytes(pickling.dumps(PackedProgram.pack(program)))
        return str(path)

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
