"""The commands ``list``, ``cancel``, ``stop``, ``checkpoint`` and ``rescale``, for jobs of a session."""

from __future__ import annotations

import time
from typing import Any

import click

from firesteel.cli.progress import progress
from firesteel.cli.settings import (
    address_option,
    explained_errors,
    json_option,
    print_json,
    session_client,
    settings_option,
)

_RULE = "-" * 62
_SCHEDULED = ("CREATED", "INITIALIZING")
_ENDED = ("FINISHED", "CANCELED", "FAILED", "SUSPENDED")
_FORMATS = click.Choice(["canonical", "native"], case_sensitive=False)


def check_job_id(_context: Any, _parameter: Any, value: str | None) -> str | None:
    """Check the form of a job id before any server is asked."""
    from firesteel.common.job_id import JobID

    if value is None:
        return None
    try:
        return str(JobID(value))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


job_id_argument = click.argument("job_id", callback=check_job_id)


@click.command("list")
@click.option("-r", "--running", is_flag=True, help="Show only running jobs.")
@click.option("-s", "--scheduled", is_flag=True, help="Show only jobs that wait for slots.")
@click.option("-a", "--all", "everything", is_flag=True, help="Show jobs that have ended, too.")
@address_option
@settings_option
@json_option
def list_jobs(
    running: bool,
    scheduled: bool,
    everything: bool,
    address: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the jobs of a session.

    \b
    Example:
        firesteel list -a -m localhost:8081
    """
    with explained_errors("Failed to retrieve job list."):
        client = session_client(address, settings)
        if not as_json:
            click.echo("Waiting for response...")
        jobs = sorted(client.get("/jobs/overview")["jobs"], key=lambda job: job["start-time"])
    if not running and not scheduled and not everything:
        running = scheduled = True
    groups: list[tuple[str, str | None, list[Any]]] = []
    if running or everything:
        found = [job for job in jobs if job["state"] not in (*_SCHEDULED, *_ENDED)]
        groups.append(("Running/Restarting Jobs", "No running jobs.", found))
    if scheduled or everything:
        found = [job for job in jobs if job["state"] in _SCHEDULED]
        groups.append(("Scheduled Jobs", "No scheduled jobs.", found))
    if everything:
        found = [job for job in jobs if job["state"] in _ENDED]
        groups.append(("Terminated Jobs", None, found))
    if as_json:
        print_json({"jobs": [job for _, _, found in groups for job in found]})
        return
    for title, none, found in groups:
        if found:
            click.echo(f" {title} ".center(len(_RULE), "-"))
            for job in found:
                started = time.strftime("%d.%m.%Y %H:%M:%S", _local(job["start-time"]))
                click.echo(f"{started} : {job['jid']} : {job['name']} ({job['state']})")
            click.echo(_RULE)
        elif none is not None:
            click.echo(none)


def _local(millis: int) -> time.struct_time:
    return time.localtime(millis / 1000)


@click.command()
@job_id_argument
@click.option(
    "-s",
    "--withSavepoint",
    "with_savepoint",
    is_flag=False,
    flag_value="",
    metavar="[DIRECTORY]",
    help="Deprecated: take a savepoint first. Use stop instead.",
)
@address_option
@settings_option
@json_option
def cancel(
    job_id: str,
    with_savepoint: str | None,
    address: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Cancel the job JOB_ID.

    \b
    Example:
        firesteel cancel 5e20cb6b0f357591171dfcca2eea09de
    """
    say = Speaker(as_json)
    with explained_errors(f"Could not cancel job {job_id}."):
        client = session_client(address, settings)
        if with_savepoint is not None:
            say(
                "DEPRECATION WARNING: Cancelling a job with savepoint is deprecated. "
                'Use "stop" instead.'
            )
            place = with_savepoint or None
            to = f"to {place}." if place else "to default savepoint directory."
            say(f"Cancelling job {job_id} with CANONICAL savepoint {to}")
            body = {"target-directory": place, "cancel-job": True}
            with progress("taking the savepoint"):
                path = take_savepoint(client, job_id, f"/jobs/{job_id}/savepoints", body)
            say(f"Cancelled job {job_id}. Savepoint stored in {path}.", savepoint=path)
            return
        say(f"Cancelling job {job_id}.")
        client.patch(f"/jobs/{job_id}?mode=cancel")
    say(f"Cancelled job {job_id}.", job=job_id)


@click.command()
@job_id_argument
@click.option(
    "-p",
    "--savepointPath",
    "directory",
    metavar="DIRECTORY",
    help="The directory for the savepoint. The default is execution.checkpointing.savepoint-dir.",
)
@click.option(
    "-d",
    "--drain",
    is_flag=True,
    help="Fire all windows and timers before the savepoint. Do not continue from such a savepoint.",
)
@click.option("--type", "format_type", type=_FORMATS, default="canonical", show_default=True)
@click.option("-detached", "--detached", is_flag=True, help="Do not wait for the savepoint.")
@address_option
@settings_option
@json_option
def stop(
    job_id: str,
    directory: str | None,
    drain: bool,
    format_type: str,
    detached: bool,
    address: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Stop the job JOB_ID with a savepoint.

    \b
    Example:
        firesteel stop --savepointPath /data/savepoints 5e20cb6b0f357591171dfcca2eea09de
    """
    say = Speaker(as_json)
    doing = "Draining" if drain else "Suspending"
    say(f'{doing} job "{job_id}" with a {format_type.upper()} savepoint.')
    body = {"targetDirectory": directory, "drain": drain, "formatType": format_type.upper()}
    with explained_errors(f'Could not stop with a savepoint job "{job_id}".'):
        client = session_client(address, settings)
        if detached:
            trigger = client.post(f"/jobs/{job_id}/stop", body)["request-id"]
            say(
                f"Successfully trigger stop-with-savepoint, triggerId: {trigger}",
                triggerId=trigger,
            )
            return
        with progress("taking the savepoint"):
            path = take_savepoint(client, job_id, f"/jobs/{job_id}/stop", body)
    say(f"Savepoint completed. Path: {path}", savepoint=path)


@click.command()
@job_id_argument
@click.option(
    "-p",
    "--parallelism",
    type=click.IntRange(1),
    required=True,
    help="The new parallelism of all operators that can have it.",
)
@click.option("-detached", "--detached", is_flag=True, help="Do not wait for the restart.")
@address_option
@settings_option
@json_option
def rescale(
    job_id: str,
    parallelism: int,
    detached: bool,
    address: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Change the parallelism of the running job JOB_ID.

    The job takes a checkpoint, and restarts from it with the new parallelism.

    \b
    Example:
        firesteel rescale -p 4 5e20cb6b0f357591171dfcca2eea09de
    """
    say = Speaker(as_json)
    say(f"Rescaling job {job_id} to parallelism {parallelism}.")
    with explained_errors(f"Could not rescale job {job_id}."):
        client = session_client(address, settings)
        path = f"/jobs/{job_id}/rescaling"
        trigger = client.patch(f"{path}?parallelism={parallelism}")["request-id"]
        if detached:
            say(f"Successfully triggered rescaling, triggerId: {trigger}", triggerId=trigger)
            return
        with progress("restarting the job"):
            client.wait_for(f"{path}/{trigger}")
    say(f"Rescaled job {job_id}.", job=job_id, parallelism=parallelism)


@click.command()
@job_id_argument
@click.option("--full", is_flag=True, help="Take a full checkpoint, not an incremental one.")
@address_option
@settings_option
@json_option
def checkpoint(
    job_id: str, full: bool, address: str | None, settings: tuple[str, ...], as_json: bool
) -> None:
    """Take a checkpoint of the job JOB_ID now.

    \b
    Example:
        firesteel checkpoint 5e20cb6b0f357591171dfcca2eea09de
    """
    say = Speaker(as_json)
    kind = "FULL" if full else "CONFIGURED"
    say(f"Triggering checkpoint for job {job_id}.")
    with explained_errors(f"Failed to trigger a checkpoint for the job {job_id}."):
        client = session_client(address, settings)
        answer = client.post(f"/jobs/{job_id}/checkpoints", {"checkpointType": kind})
        say("Waiting for response...")
        with progress("taking the checkpoint"):
            outcome = client.wait_for(f"/jobs/{job_id}/checkpoints/{answer['request-id']}")
    number = outcome["checkpointId"]
    marked = "(FULL)" if full else ""
    say(f"Checkpoint{marked} {number} for job {job_id} completed.", checkpointId=number)
    say("You can resume your program from this checkpoint with the run command.")


@click.command("info")
@job_id_argument
@address_option
@settings_option
@json_option
def info_of_job(job_id: str, address: str | None, settings: tuple[str, ...], as_json: bool) -> None:
    """Show the vertices of the running job JOB_ID."""
    show_job(job_id, address, settings, as_json)


def show_job(job_id: str, address: str | None, settings: tuple[str, ...], as_json: bool) -> None:
    """Show the vertices of a running job, and the vertex that limits it."""
    with explained_errors(f"Could not show job {job_id}."):
        client = session_client(address, settings)
        job = client.get(f"/jobs/{job_id}")
        pressure = client.get(f"/jobs/{job_id}/backpressure")
    if as_json:
        print_json({"job": job, "backPressure": pressure})
        return
    click.echo(f"Job {job_id} : {job['name']} ({job['state']})")
    shares = {vertex["id"]: vertex for vertex in pressure["vertices"]}
    for vertex in job["vertices"]:
        share, figures = shares[vertex["id"]], vertex["metrics"]
        click.echo(
            f"  {vertex['name']} : {vertex['status']}, parallelism {vertex['parallelism']}, "
            f"{figures['read-records']} records in, {figures['write-records']} out, busy "
            f"{share['busy']:.0%}, back-pressured {share['ratio']:.0%} ({share['level'].upper()})"
        )
    for root in pressure["roots"]:
        click.echo(f"Root of back pressure: {root['name']} (busy {root['busy']:.0%})")


def take_savepoint(client: Any, job_id: str, path: str, body: dict[str, Any]) -> str:
    """Ask for a savepoint, wait for it, and return its path."""
    trigger = client.post(path, body)["request-id"]
    return str(client.wait_for(f"/jobs/{job_id}/savepoints/{trigger}")["location"])


class Speaker:
    """Prints lines for people, or at the end one JSON document for programs."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def __call__(self, line: str, **facts: Any) -> None:
        if not self._as_json:
            click.echo(line)
        elif facts:
            print_json(facts)
