"""The command ``completion``: prints the script that completes commands in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that lets SHELL complete commands and options.

    \b
    Example, in ~/.bashrc:
        eval "$(firesteel completion bash)"
    """
    from firesteel.cli.main import main

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "firesteel", "_FIRESTEEL_COMPLETE").source())
