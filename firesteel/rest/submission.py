"""Endpoints of a session for clients of Firesteel: jobs come in, and their records go out.

Flink's API has no such calls. The other calls of clients are Flink's.
"""

from __future__ import annotations

import hmac
from typing import Any

from starlette.responses import Response

from firesteel.dispatcher.session import SessionDispatcher
from firesteel.dispatcher.session_job import SessionJob
from firesteel.dispatcher.slot_pool import NoResourceAvailableError
from firesteel.errors import FiresteelError
from firesteel.protocol.error_json import encode_error
from firesteel.rest.calls import Call, Endpoint, RestError

_SUBMISSION_BYTES = 1 << 30
_RESULT_BYTES = 4 << 20
_DOCUMENTS = ("accumulators", "metrics", "overview", "checkpoints")


def session_endpoints(dispatcher: SessionDispatcher, token: str) -> tuple[Endpoint, ...]:
    """Return the endpoints of a session. Clients need ``token`` to send code."""

    def submit(call: Call) -> Any:
        _check_token(call, token)
        file = dispatcher.new_file()
        file.write_bytes(call.body)
        try:
            job = dispatcher.submit(file)
        except NoResourceAvailableError as error:
            raise RestError(503, str(error)) from error
        except FiresteelError as error:
            raise RestError(400, str(error)) from error
        return {"jobUrl": f"/jobs/{job.job_id}"}

    def shut_down(call: Call) -> Any:
        _check_token(call, token)
        dispatcher.stop_requested.set()
        return {}

    return (
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
        ),
        Endpoint(
            "DELETE", "/cluster", shut_down, dict[str, Any], "Shuts the session down", changes=True
        ),
        Endpoint(
            "GET",
            "/firesteel/jobs/{jobid}/result",
            _result,
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
            lambda call: _records(call, token),
            bytes,
            "Returns collected records after a number, and drops those up to it",
            changes=True,
            query=("after",),
            own=True,
        ),
        Endpoint(
            "DELETE",
            "/firesteel/jobs/{jobid}/results/{node}",
            lambda call: _drop_records(call, token),
            dict[str, Any],
            "Drops the collected records of a job, now and later",
            changes=True,
            own=True,
        ),
    )


def _check_token(call: Call, token: str) -> None:
    kind, _, given = call.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
        raise RestError(
            401,
            "Only clients with the token of the session may do this. The user who has started the "
            "session has it; others set firesteel.rest.token.",
        )


def _result(call: Call) -> Any:
    job = call.job()
    result = job.result()
    if not result.done():
        return {"completed": False}
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


def _collecting(call: Call, token: str) -> tuple[SessionJob, int]:
    _check_token(call, token)
    job, node = call.job(), call.number("node")
    if not isinstance(job, SessionJob) or node not in job.manifest.collected:
        raise RestError(404, f"The job does not collect the records of operator {node}.")
    return job, node


def _records(call: Call, token: str) -> Response:
    job, node = _collecting(call, token)
    after = call.count("after", 0)
    batches = job.results(node).read(after, _RESULT_BYTES)
    return Response(
        b"".join(payload for _, payload in batches),
        media_type="application/octet-stream",
        headers={
            "X-Firesteel-Last": str(batches[-1][0] if batches else after),
            "X-Firesteel-Sizes": ",".join(str(len(payload)) for _, payload in batches),
        },
    )


def _drop_records(call: Call, token: str) -> Any:
    job, node = _collecting(call, token)
    job.results(node).close()
    return {}
