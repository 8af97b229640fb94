"""The commands ``firesteel savepoint``."""

from __future__ import annotations

import json

import click

from firesteel.cli.settings import explained_errors, file_system_options, settings_option


@click.command()
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="Print all details as JSON.")
@settings_option
def show(path: str, as_json: bool, settings: tuple[str, ...]) -> None:
    """Print the operators, uids, states and sizes of the savepoint or checkpoint at PATH.

    No code of the job is executed. If files are missing or have the wrong size, they are listed on
    standard error, and the exit code is 1.
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
    """Delete the savepoint at PATH with its files. Checkpoints are not deleted."""
    from firesteel.checkpoint.savepoints.savepoint import dispose_savepoint

    with explained_errors():
        dispose_savepoint(path, file_system_options(settings))
    click.echo(f"Savepoint '{path}' disposed.")


@click.group()
def savepoint() -> None:
    """Show and delete savepoints."""


savepoint.add_command(show)
savepoint.add_command(dispose)
