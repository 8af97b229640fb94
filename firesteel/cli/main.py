"""The command ``firesteel``, which has all commands."""

from __future__ import annotations

import click

from firesteel.cli.savepoint import savepoint
from firesteel.version import __version__

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="firesteel")
def main() -> None:
    """Run Flink's DataStream programs on Apache Spark."""


main.add_command(savepoint)

if __name__ == "__main__":
    main(prog_name="firesteel")
