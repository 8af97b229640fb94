"""The command ``firesteel savepoint``: takes, shows and deletes savepoints."""

from __future__ import annotations

import json
from typing import Any

import click

from firesteel.cli.jobs import Speaker, check_job_id, take_savepoint
from firesteel.cli.progress import progress
from firesteel.cli.settings import (
    address_option,
    explained_errors,
    file_system_options,
    json_option,
    session_client,
    settings_option,
)


@click.command()
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="Print all details as JSON.")
@settings_option
def show(path: str, as_json: bool, settings: tuple[str, ...]) -> None:
    """Print the operators, uids, states and sizes of the savepoint or checkpoint at PATH.

    No code of the job is executed. If files are missing or have the wrong size, they are listed on
    standard error, and the exit code is 1.

    \b
    Example:
        firesteel savepoint show /data/savepoints/savepoint-5e20cb-1
    """
    from firesteel.checkpoint.savepoints.description import show_snapshot

    with explained_errors():
        summary = show_snapshot(path, file_system_options(settings))
    click.echo(json.dumps(summary.to_json(), indent=2) if as_json else summary.to_text())
    for defect in summary.defects:
        click.echo(f"Error: {defect}", err=True)
    if summary.defects:
        raise SystemExit(1)


@click.command()
@click.argument("path")
@settings_option
def dispose(path: str, settings: tuple[str, ...]) -> None:
    """Delete the savepoint at PATH with its files. Checkpoints are not deleted.

    \b
    Example:
        firesteel savepoint dispose /data/savepoints/savepoint-5e20cb-1
    """
    _dispose_here(path, settings)
    click.echo(f"Savepoint '{path}' disposed.")


def _dispose_here(path: str, settings: tuple[str, ...]) -> None:
    from firesteel.checkpoint.savepoints.savepoint import dispose_savepoint

    with explained_errors(f"Failed to dispose the savepoint '{path}'."):
        dispose_savepoint(path, file_system_options(settings))


class _SavepointGroup(click.Group):
    """``savepoint show`` and ``savepoint dispose``, and Flink's form ``savepoint JOB_ID``."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            return "trigger", trigger, args
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["trigger", *args]
        return super().parse_args(ctx, args)


@click.command(hidden=True)
@click.argument("job_id", required=False, callback=check_job_id)
@click.argument("directory", required=False)
@click.option("-d", "--dispose", "disposed", metavar="PATH", help="Delete the savepoint at PATH.")
@click.option(
    "--type", "format_type", type=click.Choice(["canonical", "native"]), default="canonical"
)
@click.option("-detached", "--detached", is_flag=True, help="Do not wait for the savepoint.")
@address_option
@settings_option
@json_option
def trigger(
    job_id: str | None,
    directory: str | None,
    disposed: str | None,
    format_type: str,
    detached: bool,
    address: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Take a savepoint of the job JOB_ID below DIRECTORY.

    \b
    Examples:
        firesteel savepoint 5e20cb6b0f357591171dfcca2eea09de /data/savepoints
        firesteel savepoint -d /data/savepoints/savepoint-5e20cb-1
    """
    say = Speaker(as_json)
    if disposed is not None:
        say(f"Disposing savepoint '{disposed}'.")
        say("Waiting for response...")
        _dispose_here(disposed, settings)
        say(f"Savepoint '{disposed}' disposed.", disposed=disposed)
        return
    if job_id is None:
        raise click.UsageError("Missing JobID. Specify a Job ID to trigger a savepoint.")
    body = {
        "target-directory": directory,
        "cancel-job": False,
        "formatType": format_type.upper(),
    }
    say(f"Triggering savepoint for job {job_id}.")
    with explained_errors(f"Failed to trigger a savepoint for the job {job_id}."):
        client = session_client(address, settings)
        if detached:
            answer = client.post(f"/jobs/{job_id}/savepoints", body)["request-id"]
            say(f"Successfully trigger manual savepoint, triggerId: {answer}", triggerId=answer)
            return
        say("Waiting for response...")
        with progress("taking the savepoint"):
            path = take_savepoint(client, job_id, f"/jobs/{job_id}/savepoints", body)
    say(f"Savepoint completed. Path: {path}", savepoint=path)
    say("You can resume your program from this savepoint with the run command.")


@click.group(cls=_SavepointGroup)
def savepoint() -> None:
    """Take, show and delete savepoints.

    \b
    Examples:
        firesteel savepoint JOB_ID [DIRECTORY]   takes a savepoint of a running job
        firesteel savepoint -d PATH              deletes a savepoint, as 'dispose' does
        firesteel savepoint show PATH            prints its content
    """


savepoint.add_command(show)
savepoint.add_command(dispose)
savepoint.add_command(trigger)
