"""``firesteel savepoint``: the group of what can be done with savepoints."""

from __future__ import annotations

import click

from firesteel.cli.savepoint_dispose import dispose
from firesteel.cli.savepoint_show import show

__all__ = ["savepoint"]


@click.group()
def savepoint() -> None:
    """Look into savepoints, and delete them."""


savepoint.add_command(show)
savepoint.add_command(dispose)
