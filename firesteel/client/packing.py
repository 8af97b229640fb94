"""Packs a compiled job into the zip file that a dispatcher takes."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import BinaryIO

from firesteel.common.job_id import JobID
from firesteel.config import checkpoint_options
from firesteel.errors import ConfigurationError, InvalidProgramError
from firesteel.filesystems.file_systems import is_uri, qualify
from firesteel.graph.levels import Levels
from firesteel.graph.operator_specs import CollectSpec, DataFrameSinkSpec, DataFrameSourceSpec
from firesteel.graph.settings import JobSettings, PythonRequirements
from firesteel.graph.stream_graph import StreamGraph
from firesteel.master.job_description import describe_job
from firesteel.protocol.program import JobProgram, PackedProgram
from firesteel.protocol.submission import (
    Manifest,
    ProgramParts,
    SubmissionWriter,
    TravelingFiles,
    python_version,
)
from firesteel.usercode.loading import PackedPart
from firesteel.usercode.search_path import SearchPath
from firesteel.version import __version__


def pack_job(
    job_id: JobID, graph: StreamGraph, levels: Levels, settings: JobSettings, stream: BinaryIO
) -> Manifest:
    """Write the zip file of a job to ``stream``.

    Raises:
        InvalidProgramError: The job can only run in the process of its program.
    """
    _check(graph)
    search_path = SearchPath.of_driver()
    frames = [node for node in graph.nodes.values() if isinstance(node.spec, DataFrameSinkSpec)]
    parts = ProgramParts(
        PackedProgram.pack(JobProgram(str(job_id), settings.job_name, 0, levels)),
        {
            node.id: PackedPart.pack(graph.driver_objects[node.id], node.name, search_path)
            for node in frames
        },
    )
    manifest = Manifest(
        job_id=str(job_id),
        name=settings.job_name,
        firesteel=__version__,
        python=python_version(),
        runtime_mode=settings.runtime_mode.name,
        bounded=settings.bounded,
        buffer_timeout=settings.buffer_timeout,
        has_dataframes=bool(frames),
        configuration=_with_whole_paths(settings.configuration.to_dict()),
        description=asdict(describe_job(str(job_id), settings, levels)),
        collected=tuple(
            node.id for node in graph.nodes.values() if isinstance(node.spec, CollectSpec)
        ),
    )
    with SubmissionWriter(stream) as writer:
        manifest = replace(manifest, files=_add_files(settings, writer))
        writer.finish(manifest, parts)
    return manifest


def _with_whole_paths(configuration: dict[str, str]) -> dict[str, str]:
    """Resolve relative directories here: the job runs in a directory that is deleted with it."""
    keys = (checkpoint_options.CHECKPOINT_DIR.key, checkpoint_options.SAVEPOINT_DIR.key)
    paths = {key: qualify(configuration[key]) for key in keys if configuration.get(key)}
    return configuration | paths


def _check(graph: StreamGraph) -> None:
    expected = CollectSpec | DataFrameSinkSpec
    for node in graph.nodes.values():
        if isinstance(node.spec, DataFrameSourceSpec):
            raise InvalidProgramError(
                f"'{node.name}' reads a DataFrame, which belongs to the Spark session of this "
                "program, but the job goes to a different one. Run the program without -m, or read "
                "the data with a source of Firesteel's."
            )
        if node.id in graph.driver_objects and not isinstance(node.spec, expected):
            raise InvalidProgramError(
                f"'{node.name}' caches records on the disk of this program, but the job runs in a "
                "session. Run the program without -m, or write the records to a file sink."
            )


def _add_files(settings: JobSettings, writer: SubmissionWriter) -> TravelingFiles:
    def add(path: str, key: str) -> str:
        qualified = qualify(path)
        if is_uri(qualified):
            # The session reads it from there.
            return path
        local = Path(qualified)
        if not local.exists():
            raise ConfigurationError(f"{key}: there is nothing at {path}", key=key)
        return writer.add(local)

    requirements = settings.requirements
    if requirements is not None:
        key, cache = "python.requirements", requirements.cache_directory
        requirements = PythonRequirements(
            add(requirements.path, key), None if cache is None else add(cache, key)
        )
    return TravelingFiles(
        tuple(add(path, "python.files") for path in settings.python_files),
        requirements,
        tuple(
            replace(archive, path=add(archive.path, "python.archives"))
            for archive in settings.python_archives
        ),
        tuple(
            replace(file, path=add(file.path, "pipeline.cached-files"))
            for file in settings.cached_files
        ),
    )
