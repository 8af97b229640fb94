"""The command ``firesteel``, which has all commands."""

from __future__ import annotations

import click

from firesteel.cli.completion import completion
from firesteel.cli.doctor import doctor
from firesteel.cli.jobs import cancel, checkpoint, list_jobs, rescale, stop
from firesteel.cli.run import info, run
from firesteel.cli.savepoint import savepoint
from firesteel.cli.session import history_server, session
from firesteel.version import __version__

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-v", "--version", prog_name="firesteel")
def main() -> None:
    """Run Flink's DataStream programs on Apache Spark.

    \b
    Examples:
        firesteel run job.py                     run a program, with a dashboard
        firesteel session start -d               start a session for many jobs
        firesteel run -m localhost:8081 job.py   run a program in the session
        firesteel list -a                        list the jobs of the session
        firesteel doctor                         check this machine
    """


for command in (
    run,
    info,
    list_jobs,
    cancel,
    stop,
    savepoint,
    checkpoint,
    rescale,
    session,
    history_server,
    doctor,
    completion,
):
    main.add_command(command)

if __name__ == "__main__":
    main(prog_name="firesteel")
