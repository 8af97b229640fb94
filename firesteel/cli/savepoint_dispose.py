"""``firesteel savepoint dispose``: delete one."""

from __future__ import annotations

import click

from firesteel.cli.errors import explained_errors
from firesteel.cli.settings import file_system_options, settings_option

__all__ = ["dispose"]


@click.command()
@click.argument("path")
@settings_option
def dispose(path: str, settings: tuple[str, ...]) -> None:
    """Delete the savepoint at PATH with its files. Checkpoints are refused."""
    from firesteel.checkpoint.savepoint import dispose_savepoint

    with explained_errors():
        dispose_savepoint(path, file_system_options(settings))
    click.echo(f"Savepoint '{path}' disposed.")
