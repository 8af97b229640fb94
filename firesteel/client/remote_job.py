"""A job in a session, as its client controls it: the calls of JobClient over REST."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from firesteel.client.masters import masters_of
from firesteel.client.packing import pack_job
from firesteel.client.rest_client import RestClient, RestClientError, UnreachableError, url_of
from firesteel.client.sessions import session_at
from firesteel.common.configuration import Configuration
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.config import options, rest_options
from firesteel.errors import FiresteelError, JobExecutionError
from firesteel.graph.levels import Levels
from firesteel.graph.operator_specs import CollectSpec
from firesteel.graph.settings import JobSettings
from firesteel.graph.stream_graph import StreamGraph
from firesteel.master.driver_output import Collector
from firesteel.protocol.error_json import decode_error
from firesteel.usercode import pickling

T = TypeVar("T")

_POLL_SECONDS = 0.2
_RESULT_POLL_SECONDS = (0.02, 0.05, 0.1)
# A session that cannot be reached for longer than this is lost, and so is one without a leader.
_LOST_SECONDS = 180.0
BATCH_NUMBER, BATCH_SIZES = "x-firesteel-last", "x-firesteel-sizes"
GENERATION = "x-firesteel-generation"


def is_remote(configuration: Configuration) -> bool:
    """Return True if jobs go to a session: ``execution.target`` is remote."""
    return configuration.get_optional(options.TARGET) == "remote"


def connect(configuration: Configuration) -> RestClient:
    """Return a client for the session that the settings name."""
    host = configuration.get(rest_options.REST_ADDRESS) or "localhost"
    scheme = "https" if configuration.get(rest_options.REST_SSL) else "http"
    first = f"{scheme}://{host}:{configuration.get(rest_options.REST_PORT)}"
    more = configuration.get(rest_options.REST_MASTERS) or ""
    if not configuration.contains(rest_options.REST_ADDRESS) and not more:
        masters = masters_of(configuration, ())
        first = masters.leader() or first
        masters.close()
    return client_at(f"{first},{more}" if more else first, configuration)


def client_at(address: str, configuration: Configuration) -> RestClient:
    """Return a client for an address, or for several masters with commas between them.

    Its token is in the settings, or known for own sessions.
    """
    urls = [url_of(one.strip()) for one in address.split(",") if one.strip()]
    token = configuration.get(rest_options.REST_TOKEN)
    if token is None:
        sessions = filter(None, map(session_at, urls))
        token = next((session.token for session in sessions), None)
    certificate = configuration.get(rest_options.REST_SSL_CERTIFICATE)
    return RestClient(
        urls[0],
        token,
        certificate if urls[0].startswith("https://") else None,
        masters_of(configuration, urls),
    )


def submit(graph: StreamGraph, levels: Levels, settings: JobSettings) -> RemoteJob:
    """Send a job to the session that its settings name."""
    client = connect(settings.configuration)
    job_id = JobID.generate()
    with tempfile.TemporaryFile() as file:
        pack_job(job_id, graph, levels, settings, file)
        client.upload("/firesteel/jobs", file, file.tell())
    attached = settings.configuration.get(options.ATTACHED)
    on_exit = settings.configuration.get(options.SHUTDOWN_ON_ATTACHED_EXIT)
    job = RemoteJob(job_id, client, cancel_on_interrupt=attached and on_exit)
    for node in graph.nodes.values():
        if isinstance(node.spec, CollectSpec):
            job.collect(node.id, graph.driver_objects[node.id])
    return job


class RemoteJob:
    """Controls a job of a session.

    Args:
        job_id: The id of the job.
        client: The client of the session.
        cancel_on_interrupt: Ctrl-C cancels the job. Otherwise the job continues without its client.
    """

    def __init__(
        self, job_id: JobID, client: RestClient, *, cancel_on_interrupt: bool = False
    ) -> None:
        self.job_id = job_id
        self._client = client
        self._cancel_on_interrupt = cancel_on_interrupt
        self._path = f"/jobs/{job_id}"
        self._own_path = f"/firesteel/jobs/{job_id}"
        self._result: Future[JobExecutionResult] | None = None
        self._lock = threading.Lock()
        self._collecting: list[threading.Thread] = []
        self._generations: dict[int, str] = {}

    def status(self) -> JobStatus:
        answer = self._client.get(f"{self._path}/status")
        return JobStatus[answer["status"].replace("INITIALIZING", "CREATED")]

    def cancel(self) -> Future[None]:
        try:
            self._client.patch(f"{self._path}?mode=cancel")
        except RestClientError as error:
            if error.status != 409:
                raise
        done: Future[None] = Future()
        self.result().add_done_callback(lambda _: done.set_result(None))
        return done

    def cancel_and_wait(self) -> None:
        self.cancel().result()

    def interrupt(self) -> None:
        """Handle Ctrl-C of a client that waits for the job."""
        if self._cancel_on_interrupt:
            self.cancel_and_wait()
        else:
            sys.stderr.write(
                f"The job {self.job_id} continues in the session at {self._client.url}. To cancel "
                f"it: firesteel cancel {self.job_id}\n"
            )

    def result(self) -> Future[JobExecutionResult]:
        with self._lock:
            if self._result is None:
                self._result = in_thread(self._wait_for_result, "firesteel-result")
            return self._result

    def _wait_for_result(self) -> JobExecutionResult:
        answer = self._patiently(self._ended_result)
        for thread in self._collecting:
            thread.join()
        if answer["error"] is not None:
            raise decode_error(answer["error"])
        return JobExecutionResult(
            self.job_id, answer["runtime"], answer["accumulators"], answer["name"]
        )

    def _ended_result(self) -> dict[str, Any] | None:
        answer: dict[str, Any] = self._client.get(f"{self._own_path}/result")
        return answer if answer["completed"] else None

    def _patiently(self, ask: Callable[[], T | None]) -> T:
        """Ask until there is an answer. A session may be unreachable, or have no leader, for a while."""
        last_seen = time.monotonic()
        while True:
            try:
                answer = ask()
                last_seen = time.monotonic()
            except (UnreachableError, RestClientError) as error:
                if isinstance(error, RestClientError) and not error.is_temporary:
                    raise
                if time.monotonic() - last_seen > _LOST_SECONDS:
                    raise
                answer = None
            if answer is not None:
                return answer
            time.sleep(_POLL_SECONDS)

    def accumulators(self) -> dict[str, Any]:
        return self._document("accumulators")

    def metrics(self) -> dict[str, Any]:
        return self._document("metrics")

    def overview(self) -> dict[str, Any]:
        return self._document("overview")

    def checkpoints(self) -> dict[str, Any]:
        return self._document("checkpoints")

    def _document(self, name: str) -> dict[str, Any]:
        document: dict[str, Any] = self._client.get(f"{self._own_path}/{name}")
        return document

    def checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None:
        try:
            return self._document(f"checkpoints/{checkpoint_id}")
        except RestClientError as error:
            if error.status == 404:
                return None
            raise

    def savepoint(
        self, directory: str | None, stop: str | None, native: bool = False
    ) -> Future[str]:
        """Take a savepoint. The session chooses the directory if there is none."""
        if stop is None:
            body: dict[str, Any] = {"target-directory": directory, "cancel-job": False}
            path = f"{self._path}/savepoints"
        else:
            body = {"targetDirectory": directory, "drain": stop == "drain"}
            path = f"{self._path}/stop"
        body["formatType"] = "NATIVE" if native else "CANONICAL"

        def run() -> str:
            trigger = self._client.post(path, body)["request-id"]
            operation = self._client.wait_for(f"{self._path}/savepoints/{trigger}")
            return str(operation["location"])

        return in_thread(run, "firesteel-savepoint")

    def checkpoint(self) -> Future[str]:
        def run() -> str:
            trigger = self._client.post(f"{self._path}/checkpoints", {})["request-id"]
            operation = self._client.wait_for(f"{self._path}/checkpoints/{trigger}")
            number = operation["checkpointId"]
            details = self.checkpoint_details(number)
            return str((details or {}).get("external_path") or f"chk-{number}")

        return in_thread(run, "firesteel-checkpoint")

    # Collected records

    def collect(self, node: int, buffer: Collector) -> None:
        """Bring the records of a collected stream into its buffer while the job runs."""
        thread = threading.Thread(
            target=self._bring, args=(node, buffer), name="firesteel-collect", daemon=True
        )
        self._collecting.append(thread)
        thread.start()

    def _bring(self, node: int, buffer: Collector) -> None:
        try:
            last = 0
            self._generations.pop(node, None)
            while True:
                # Asked first: records that are there at the end of the job are all of them.
                ended = self._patiently(self._client_sees_end)
                batches, last = self._patiently(lambda: self._batches(node, last))  # noqa: B023
                for batch in batches:
                    buffer.add(pickling.loads(batch))
                if not batches and ended == "ended":
                    return
        except FiresteelError as error:
            # The result of the job has the same reason, or the job is forgotten.
            sys.stderr.write(f"The records of {self.job_id} are lost: {error}\n")

    def _client_sees_end(self) -> str:
        answer = self._client.get(f"{self._own_path}/result")
        return "ended" if answer["completed"] else "running"

    def _batches(self, node: int, after: int) -> tuple[list[bytes], int]:
        for pause in (*_RESULT_POLL_SECONDS, 0.0):
            body, headers = self._client.get_bytes(f"{self._own_path}/results/{node}?after={after}")
            sizes = [int(size) for size in headers.get(BATCH_SIZES, "").split(",") if size]
            self._check_generation(node, after, headers.get(GENERATION, ""))
            if sizes or not pause:
                break
            time.sleep(pause)
        batches, start = [], 0
        for size in sizes:
            batches.append(body[start : start + size])
            start += size
        return batches, int(headers.get(BATCH_NUMBER, after))

    def _check_generation(self, node: int, after: int, generation: str) -> None:
        """Refuse records of a job that a new leader has started from the beginning."""
        if not generation:
            # The job has not made a record yet, at least not with this leader.
            return
        if after and self._generations.get(node, generation) != generation:
            raise JobExecutionError(
                "the leader of the session has changed, and the job had no checkpoint, so it makes "
                "its records again. Set execution.checkpointing.interval, so that it continues"
            )
        self._generations[node] = generation


def in_thread(work: Callable[[], T], name: str) -> Future[T]:
    """Return a future with the result of ``work``, which runs in a thread."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except FiresteelError as error:
            future.set_exception(error)
        except Exception as error:  # noqa: BLE001 - the owner of the future gets it
            wrapped = JobExecutionError(f"{type(error).__name__}: {error}")
            wrapped.__cause__ = error
            future.set_exception(wrapped)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
