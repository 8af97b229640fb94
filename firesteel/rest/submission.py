"""Endpoints of a session for clients of Firesteel: jobs come in, and their records go out.

Flink's API has no such calls, apart from those for uploaded programs and the end of the session.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.responses import Response

from firesteel.config import rest_options
from firesteel.dispatcher.durable_results import DurableResultReader
from firesteel.dispatcher.programs import Programs, TooManyRunsError, UploadedProgram
from firesteel.dispatcher.results import ResultReader
from firesteel.dispatcher.session import SessionDispatcher
from firesteel.dispatcher.slot_pool import NoResourceAvailableError
from firesteel.errors import FiresteelError, LeadershipLostError
from firesteel.protocol.error_json import encode_error
from firesteel.rest import models
from firesteel.rest.calls import Call, Endpoint, RestError
from firesteel.rest.standby import no_leader

_SUBMISSION_BYTES = 1 << 30
_PROGRAM_BYTES = 4 << 20
_RESULT_BYTES = 4 << 20
# Options of `firesteel run` by the fields of a request to run a program, with their types.
_RUN_FIELDS: dict[str, tuple[type, str]] = {
    "parallelism": (int, "-p"),
    "savepointPath": (str, "-s"),
    "claimMode": (str, "-cm"),
}
_DOCUMENTS = ("accumulators", "metrics", "overview", "checkpoints")


def session_endpoints(dispatcher: SessionDispatcher, token: str) -> tuple[Endpoint, ...]:
    """Return the endpoints of a session. Clients need ``token`` to send code."""

    def new_file() -> Path:
        return dispatcher.new_file()

    def submit(call: Call) -> Any:
        assert call.file is not None
        try:
            job = dispatcher.submit(call.file)
        except LeadershipLostError as error:
            return no_leader(str(error))
        except NoResourceAvailableError as error:
            raise RestError(503, str(error)) from error
        except FiresteelError as error:
            raise RestError(400, str(error)) from error
        return {"jobUrl": f"/jobs/{job.job_id}"}

    def shut_down(call: Call) -> Any:
        dispatcher.stop_requested.set()
        return {}

    def upload(call: Call) -> models.JarUpload:
        name, content = _uploaded_file(call)
        try:
            program = _programs(dispatcher).add(name, content)
        except FiresteelError as error:
            raise RestError(400, str(error)) from error
        return {"filename": str(program.path), "status": "success"}

    def run(call: Call) -> models.JarRun:
        programs, program = _program(dispatcher, call)
        options, arguments = _run_options(call)
        certificate = dispatcher.configuration.get(rest_options.REST_SSL_CERTIFICATE)
        if certificate is not None:
            options.append(f"-D{rest_options.REST_SSL_CERTIFICATE.key}={certificate}")
        try:
            job_id = programs.run(program, dispatcher.url, options, arguments)
        except TooManyRunsError as error:
            raise RestError(503, str(error)) from error
        except FiresteelError as error:
            raise RestError(400, str(error)) from error
        return {"jobid": job_id}

    def delete(call: Call) -> Any:
        programs, program = _program(dispatcher, call)
        programs.delete(program)
        return {}

    endpoints = (
        Endpoint(
            "POST",
            "/jars/upload",
            upload,
            models.JarUpload,
            "Uploads a program in Python",
            changes=True,
            max_body=_PROGRAM_BYTES,
        ),
        Endpoint(
            "POST",
            "/jars/{jarid}/run",
            run,
            models.JarRun,
            "Runs an uploaded program, which submits a job",
            changes=True,
            waits=True,
        ),
        Endpoint(
            "DELETE",
            "/jars/{jarid}",
            delete,
            dict[str, Any],
            "Deletes an uploaded program",
            changes=True,
        ),
        Endpoint(
            "POST",
            "/firesteel/jobs",
            submit,
            dict[str, str],
            "Submits a job that a client has packed",
            status=202,
            changes=True,
            own=True,
            max_body=_SUBMISSION_BYTES,
            new_file=new_file,
        ),
        Endpoint(
            "DELETE", "/cluster", shut_down, dict[str, Any], "Shuts the session down", changes=True
        ),
        Endpoint(
            "GET",
            "/firesteel/jobs/{jobid}/result",
            lambda call: _result(call, dispatcher),
            dict[str, Any],
            "Returns the outcome of a job, once it has ended",
            own=True,
        ),
        *(
            Endpoint(
                "GET",
                f"/firesteel/jobs/{{jobid}}/{name}",
                _document(name),
                dict[str, Any],
                f"Returns the {name} of a job",
                own=True,
            )
            for name in _DOCUMENTS
        ),
        Endpoint(
            "GET",
            "/firesteel/jobs/{jobid}/checkpoints/{checkpointid}",
            _checkpoint,
            dict[str, Any],
            "Returns the details of a checkpoint",
            own=True,
        ),
        Endpoint(
            "GET",
            "/firesteel/jobs/{jobid}/results/{node}",
            lambda call: _records(call, dispatcher),
            bytes,
            "Returns collected records after a number, and drops those up to it",
            changes=True,
            query=("after",),
            own=True,
        ),
        Endpoint(
            "DELETE",
            "/firesteel/jobs/{jobid}/results/{node}",
            lambda call: _drop_records(call, dispatcher),
            dict[str, Any],
            "Drops the collected records of a job, now and later",
            changes=True,
            own=True,
        ),
    )
    return tuple(
        replace(endpoint, token=token) if endpoint.changes else endpoint for endpoint in endpoints
    )


def _programs(dispatcher: SessionDispatcher) -> Programs:
    if not dispatcher.configuration.get(rest_options.WEB_SUBMIT) or dispatcher.programs is None:
        raise RestError(403, f"{rest_options.WEB_SUBMIT.key} is false in this session.")
    return dispatcher.programs


def _program(dispatcher: SessionDispatcher, call: Call) -> tuple[Programs, UploadedProgram]:
    programs = _programs(dispatcher)
    program = programs.find(call.path["jarid"])
    if program is None:
        raise RestError(404, f"There is no program {call.path['jarid']!r}.")
    return programs, program


def _uploaded_file(call: Call) -> tuple[str, bytes]:
    """Return the name and the content of the first file of a form."""
    kind = call.headers.get("content-type", "")
    boundary = re.search(r'boundary="?([^";,\s]{1,200})', kind)
    if not kind.startswith("multipart/form-data") or boundary is None:
        raise RestError(400, "Send the program as a form with one file (multipart/form-data).")
    for part in call.body.split(b"--" + boundary[1].encode())[1:]:
        head, _, content = part.partition(b"\r\n\r\n")
        name = re.search(rb'filename="([^"]*)"', head)
        if name is not None:
            return name[1].decode(errors="replace"), content.removesuffix(b"\r\n")
    raise RestError(400, "The form has no file.")


def _run_options(call: Call) -> tuple[list[str], list[str]]:
    """Return the options of `firesteel run`, and the arguments of the program."""
    options = []
    for name, (kind, option) in _RUN_FIELDS.items():
        value = call.field(name, kind)
        if value is not None and value != "":
            options += [option, str(value).lower() if name == "claimMode" else str(value)]
    if call.field("allowNonRestoredState", bool, False):
        options.append("-n")
    for key, value in call.field("flinkConfiguration", dict, {}).items():
        options.append(f"-D{key}={value}")
    arguments = call.field("programArgsList", list, [])
    if not all(isinstance(one, str) for one in arguments):
        raise RestError(400, "The field 'programArgsList' must be a list of text.")
    return options, list(arguments)


def _result(call: Call, dispatcher: SessionDispatcher) -> Any:
    job = call.job()
    if not dispatcher.has_ended(job):
        return {"completed": False}
    result = job.result()
    error = result.exception()
    return {
        "completed": True,
        "name": job.name,
        "error": None if error is None else encode_error(error),
        "runtime": 0 if error is not None else result.result().get_net_runtime(),
        "accumulators": job.accumulators(),
    }


def _document(name: str) -> Any:
    return lambda call: getattr(call.job(), name)()


def _checkpoint(call: Call) -> Any:
    number = call.number("checkpointid")
    details = call.job().checkpoint_details(number)
    if details is None:
        raise RestError(404, f"There is no checkpoint {number} in the history.")
    return details


def _collecting(call: Call, dispatcher: SessionDispatcher) -> ResultReader | DurableResultReader:
    node = call.number("node")
    reader = dispatcher.results(call.job(), node)
    if reader is None:
        raise RestError(404, f"The job does not collect the records of operator {node}.")
    return reader


def _records(call: Call, dispatcher: SessionDispatcher) -> Response:
    reader = _collecting(call, dispatcher)
    after = call.count("after", 0)
    batches = reader.read(after, _RESULT_BYTES)
    return Response(
        b"".join(payload for _, payload in batches),
        media_type="application/octet-stream",
        headers={
            "X-Firesteel-Last": str(batches[-1][0] if batches else after),
            "X-Firesteel-Sizes": ",".join(str(len(payload)) for _, payload in batches),
            "X-Firesteel-Generation": str(reader.generation() or ""),
        },
    )


def _drop_records(call: Call, dispatcher: SessionDispatcher) -> Any:
    _collecting(call, dispatcher).close()
    return {}
