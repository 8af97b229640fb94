"""``firesteel savepoint show``: what is inside."""

from __future__ import annotations

import json

import click

from firesteel.cli.errors import explained_errors
from firesteel.cli.settings import file_system_options, settings_option

__all__ = ["show"]


@click.command()
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all that is known.")
@settings_option
def show(path: str, as_json: bool, settings: tuple[str, ...]) -> None:
    """Print the operators, uids, states and sizes of the savepoint or checkpoint at PATH.

    Nothing of what is inside is executed. Files that are missing or have another size are named on
    standard error, and the exit code is 1.
    """
    from firesteel.checkpoint.savepoint_description import show_snapshot

    with explained_errors():
        summary = show_snapshot(path, file_system_options(settings))
    click.echo(json.dumps(summary.to_json(), indent=2) if as_json else summary.to_text())
    for defect in summary.defects:
        click.echo(f"Error: {defect}", err=True)
    if summary.defects:
        raise SystemExit(1)
