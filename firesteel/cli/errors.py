"""Errors that Firesteel explains itself are printed as they are, without a traceback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import click

from firesteel.errors import FiresteelError

__all__ = ["explained_errors"]


@contextlib.contextmanager
def explained_errors() -> Iterator[None]:
    try:
        yield
    except FiresteelError as error:
        raise click.ClickException(str(error)) from error
