"""The process of a job master in a session: runs one job, and answers the dispatcher.

A process per job keeps the modules of two programs apart, and their crashes. It attaches to the
Spark application of the session.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import zipfile
from concurrent.futures import Future
from dataclasses import asdict, is_dataclass, replace
from pathlib import Path
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.config import options
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.dispatcher.channel import Channel
from firesteel.dispatcher.durable_results import DurableResultWriter
from firesteel.dispatcher.job_store import results_storage
from firesteel.dispatcher.results import ResultWriter
from firesteel.graph.settings import JobSettings
from firesteel.graph.stream_graph import StreamGraph
from firesteel.leader.job_ledger import JobLedger
from firesteel.leader.services import is_passing
from firesteel.leader.settings import settings_from_json
from firesteel.logs import log_to_standard_error
from firesteel.master.job_runner import explained
from firesteel.master.launcher import launch
from firesteel.master.running_jobs import RunningJob
from firesteel.protocol.error_json import encode_error
from firesteel.protocol.submission import (
    MANIFEST,
    PROGRAM,
    Manifest,
    ProgramParts,
    TravelingFiles,
    located,
)
from firesteel.usercode import pickling
from firesteel.usercode.search_path import SearchPath

_log = logging.getLogger("firesteel")

RESULTS, LEADER = "results", "leader.json"
# The calls of the dispatcher: methods of RunningJob. The first ones describe a job that has ended.
DOCUMENTS = (
    "timestamps",
    "failures",
    "restarts",
    "overview",
    "accumulators",
    "metrics",
    "checkpoints",
)
CALLS = frozenset(
    {
        *DOCUMENTS,
        "ask_slot",
        "cancel",
        "checkpoint",
        "checkpoint_details",
        "plan_rescale",
        "rescale",
        "savepoint",
        "status",
    }
)


def main(arguments: list[str]) -> None:
    """Run a job. The arguments: the descriptor of the channel, the job's directory, its workers."""
    descriptor, directory, workers = arguments
    channel = Channel(int(descriptor))
    try:
        job, results = launch_submitted(Path(directory), workers)
    except BaseException as error:
        # A job with several masters has been accepted, perhaps by an earlier one.
        is_postponed = is_passing(error) and Path(directory, LEADER).exists()
        event = "postponed" if is_postponed else "refused"
        _tell(channel, {"event": event, "error": encode_error(explained(error, "", ""))})
        raise
    JobServer(job, results, channel).serve()


def write_leader_file(directory: Path, settings: dict[str, Any]) -> None:
    """Leave the settings of the leader in the directory of a job, for this user only."""
    descriptor = os.open(directory / LEADER, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(settings, file)


def _collectors(
    directory: Path, manifest: Manifest, spool: int
) -> tuple[dict[int, ResultWriter | DurableResultWriter], JobLedger | None]:
    """Return the collectors of the job by node, and its ledger if there are several masters."""
    if not (directory / LEADER).exists():
        return {
            node: ResultWriter(directory / RESULTS / str(node), spool)
            for node in manifest.collected
        }, None
    settings, term = settings_from_json(json.loads((directory / LEADER).read_text()))
    services = settings.open()
    ledger = settings.ledger(services, term, manifest.job_id)
    pointers = ledger.pointers()
    known = pointers[0].results if pointers else {}
    return {
        node: DurableResultWriter(
            results_storage(services, manifest.job_id, node), term, known.get(node, ()), spool
        )
        for node in manifest.collected
    }, ledger


def launch_submitted(
    directory: Path, workers: str
) -> tuple[RunningJob, list[ResultWriter | DurableResultWriter]]:
    """Start the job that was unpacked into a directory, and return its collectors."""
    manifest = Manifest.from_json((directory / MANIFEST).read_bytes())
    log_to_standard_error(manifest.name)
    configuration = Configuration.from_dict(manifest.configuration)
    files, searched = _prepare_files(located(manifest.files, directory), directory)
    parts: ProgramParts = pickling.loads((directory / PROGRAM).read_bytes())
    # The files that were sent come before the directories of the client, if this machine has them.
    search_path = SearchPath(tuple(searched), ()).then(parts.program.search_path)
    program = replace(parts.program, search_path=search_path).unpack()
    graph = program.levels.job_graph
    results, ledger = _collectors(
        directory, manifest, configuration.get(options.COLLECT_SPOOL_SIZE)
    )
    stream_graph = StreamGraph(
        graph.job_name,
        graph.nodes,
        tuple(sorted((*graph.edges, *graph.chained_edges), key=lambda edge: edge.id)),
        {
            **results,
            **{node: part.load(manifest.name) for node, part in parts.driver_functions.items()},
        },
        graph.feedback_edges,
    )
    settings = JobSettings(
        job_name=manifest.name,
        configuration=configuration,
        runtime_mode=RuntimeExecutionMode[manifest.runtime_mode],
        bounded=manifest.bounded,
        buffer_timeout=manifest.buffer_timeout,
        python_files=files.python_files,
        python_archives=files.archives,
        cached_files=files.cached_files,
    )
    from firesteel.spark.application import attach

    executable = configuration.get_optional(options.PYTHON_EXECUTABLE)
    os.environ["PYSPARK_PYTHON"] = executable or sys.executable
    attach(workers)
    job = launch(stream_graph, program.levels, settings, JobID(manifest.job_id), ledger)
    return job, list(results.values())


def _prepare_files(files: TravelingFiles, directory: Path) -> tuple[TravelingFiles, list[str]]:
    """Return the files for the tasks, and their places for the search path of this process.

    Spark ships a file by its name, so each gets one that no other job uses.
    """
    from firesteel.spark.shipping import install_requirements, zip_directory

    paths = [Path(path) for path in files.python_files]
    if files.requirements is not None:
        installed = directory / "requirements"
        install_requirements(files.requirements, installed)
        paths.append(installed)
    shipped, searched = [], []
    for number, path in enumerate(paths):
        target = directory / f"{directory.name}-{number}.zip"
        if path.is_dir():
            zip_directory(path, target)
            searched.append(str(path))
        elif path.suffix == ".py":
            with zipfile.ZipFile(target, "w") as archive:
                archive.write(path, path.name)
            searched.append(str(path.parent))
        else:
            path.rename(target)
            searched.append(str(target))
        shipped.append(str(target))
    return replace(files, python_files=tuple(shipped), requirements=None), searched


class JobServer:
    """Answers the calls of the dispatcher until the job has ended."""

    def __init__(
        self,
        job: RunningJob,
        results: list[ResultWriter | DurableResultWriter],
        channel: Channel,
    ) -> None:
        self._job = job
        self._results = results
        self._channel = channel
        job.result().add_done_callback(self._ended)
        _tell(channel, {"event": "started"})

    def serve(self) -> None:
        while (message := self._channel.receive()) is not None:
            # A call may wait for a lock of the job. Others must not wait for it.
            threading.Thread(target=self._answer, args=(message,), daemon=True).start()
        if not self._job.result().done():
            _log.warning("the session of %s is gone, so the job ends here", self._job.name)
            self._job.suspend().result()

    def _answer(self, message: dict[str, Any]) -> None:
        number, call = message["id"], message["call"]
        try:
            if call not in CALLS:
                raise ValueError(f"there is no call {call!r}")
            answer = getattr(self._job, call)(*message["arguments"])
        except Exception as error:  # noqa: BLE001 - the dispatcher gets it
            _tell(self._channel, {"id": number, "error": encode_error(error)})
            return
        if isinstance(answer, Future):
            answer.add_done_callback(lambda done: self._tell_outcome(number, done))
        else:
            _tell(self._channel, {"id": number, "answer": plain(answer)})

    def _tell_outcome(self, number: int, done: Future[Any]) -> None:
        error = done.exception()
        if error is None:
            _tell(self._channel, {"id": number, "answer": plain(done.result())})
        else:
            _tell(self._channel, {"id": number, "error": encode_error(error)})

    def _ended(self, result: Future[Any]) -> None:
        error = result.exception()
        for writer in self._results:
            writer.flush()
        documents = {name: plain(getattr(self._job, name)()) for name in DOCUMENTS}
        details = {}
        for checkpoint in documents["checkpoints"].get("history", ()):
            details[str(checkpoint["id"])] = self._job.checkpoint_details(checkpoint["id"])
        _tell(
            self._channel,
            {
                "event": "ended",
                "status": self._job.status().name,
                "error": None if error is None else encode_error(error),
                "runtime": 0 if error is not None else result.result().get_net_runtime(),
                "documents": documents,
                "details": details,
            },
        )


def plain(answer: Any) -> Any:
    """Return an answer as JSON can hold it."""
    if isinstance(answer, JobStatus):
        return answer.name
    if is_dataclass(answer) and not isinstance(answer, type):
        return asdict(answer)
    if isinstance(answer, list | tuple):
        return [plain(one) for one in answer]
    return answer


def _tell(channel: Channel, message: dict[str, Any]) -> None:
    try:
        channel.send(message)
    except OSError:
        _log.debug("the session is gone and does not hear of %s", message)


if __name__ == "__main__":
    main(sys.argv[1:])
