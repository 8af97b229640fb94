"""The commands ``run`` and ``info``: run a program, or show the plan of its job."""

from __future__ import annotations

import atexit
import os
import re
import runpy
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

import click

from firesteel.cli.jobs import info_of_job, show_job
from firesteel.cli.settings import (
    Decorator,
    address_option,
    explained_errors,
    given_settings,
    json_option,
    settings_option,
)

if TYPE_CHECKING:
    from firesteel.common.configuration import Configuration
    from firesteel.common.job_client import JobControl

_JOB_ID = re.compile("[0-9a-f]{32}")
# Programs without a port of their own take the first free one of these.
_PORTS = "8081-8180"
# A program that does not lead after this time says that it waits.
_PATIENCE_SECONDS = 2.0

_PROGRAM_OPTIONS: tuple[Decorator, ...] = (
    click.option("-py", "--python", "script", metavar="FILE", help="The program."),
    click.option(
        "-pym", "--pyModule", "module", metavar="MODULE", help="The program, as a module."
    ),
    click.option(
        "-pyfs",
        "--pyFiles",
        "files",
        metavar="PATHS",
        help="Modules, directories and zip files, with commas.",
    ),
    click.option(
        "-pyreq",
        "--pyRequirements",
        "requirements",
        metavar="FILE[#DIRECTORY]",
        help="A requirements.txt to install for the tasks, and a directory with its packages.",
    ),
    click.option(
        "-pyarch",
        "--pyArchives",
        "archives",
        metavar="FILE[#TARGET]",
        help="Zip files to unpack in the working directory of the tasks, with commas.",
    ),
    click.option(
        "-pyexec", "--pyExecutable", "executable", metavar="PATH", help="The Python of the tasks."
    ),
    click.option(
        "-pyclientexec",
        "--pyClientExecutable",
        "client_executable",
        metavar="PATH",
        help="The Python that runs the program.",
    ),
    click.option(
        "-pypath",
        "--pyPythonPath",
        "python_path",
        metavar="PATHS",
        help="Further search path of modules.",
    ),
    click.option(
        "-p", "--parallelism", type=click.IntRange(1), help="The parallelism of the program."
    ),
    settings_option,
)


def _program_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_PROGRAM_OPTIONS):
        command = option(command)
    return command


@click.command(context_settings={"allow_interspersed_args": False})
@_program_options
@click.option(
    "-s",
    "--fromSavepoint",
    "savepoint",
    metavar="PATH",
    help="Start from a savepoint or checkpoint.",
)
@click.option(
    "-n",
    "--allowNonRestoredState",
    "allow_lost",
    is_flag=True,
    help="Start even if the program lacks an operator whose state is in the savepoint.",
)
@click.option(
    "-cm",
    "--claimMode",
    "claim_mode",
    type=click.Choice(["claim", "no_claim"], case_sensitive=False),
    help="claim: the job owns the savepoint and may delete it.",
)
@click.option(
    "-m",
    "--jobmanager",
    "address",
    metavar="HOST:PORT",
    help="The session to run the job in. Without it the job runs in this process.",
)
@click.option(
    "-t", "--target", type=click.Choice(["local", "remote"]), help="remote: in a session."
)
@click.option("-d", "--detached", is_flag=True, help="Do not wait for the job of a session.")
@click.option(
    "--ha",
    "continues",
    is_flag=True,
    help="Continue from the newest checkpoint of earlier runs with the same "
    "high-availability.cluster-id. Of several such programs one runs, and the others wait.",
)
@click.option(
    "-sae",
    "--shutdownOnAttachedExit",
    "cancel_on_exit",
    is_flag=True,
    help="Let Ctrl-C cancel the job of a session. Otherwise the job continues.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="PROGRAM [ARGUMENTS]...")
def run(**given: Any) -> None:
    """Run the Python program PROGRAM.

    The job runs in this process, which serves REST and the dashboard, or with -m in a session.

    \b
    Examples:
        firesteel run -p 4 job.py --input /data
        firesteel run -s /data/savepoints/savepoint-5e20cb-1 job.py
        firesteel run -m localhost:8081 -d job.py
        firesteel run --ha -Dhigh-availability.cluster-id=orders job.py
    """
    settings = _settings(given)
    program, arguments = _program(given)
    _use_interpreter(given)
    with explained_errors():
        _place(settings, given)
        from firesteel.config import options
        from firesteel.config.loader import load_configuration, set_command_line

        set_command_line(settings)
        configuration = load_configuration()
        if given["continues"]:
            configuration = _wait_until_it_leads(configuration, settings)
        if configuration.get(options.TARGET) != "remote":
            from firesteel.rest.server import serve_program

            serve_program(configuration)
    from firesteel.datastream.stream_execution_environment import program as programs

    submitted: list[JobControl] = []

    def report(job: JobControl) -> None:
        submitted.append(job)
        click.echo(f"Job has been submitted with JobID {job.job_id}")

    programs.after_launch.append(report)
    # As in Flink: the results of jobs that the program does not wait for are not printed.
    programs.after_end.append(lambda result: click.echo(str(result)))
    _execute(program, arguments, module=given["module"] is not None)
    if not submitted:
        click.echo(
            "\nThe program didn't contain a Flink job. Perhaps you forgot to call execute() on the "
            "execution environment.",
            err=True,
        )
        raise SystemExit(1)


def _wait_until_it_leads(configuration: Configuration, settings: Configuration) -> Configuration:
    """Stand for election, and return the settings once this program leads."""
    from firesteel.config import checkpoint_options, options, rest_options
    from firesteel.config.loader import load_configuration, set_command_line
    from firesteel.dispatcher.leadership import with_shared_directories
    from firesteel.leader.settings import leader_settings
    from firesteel.logs import log_to_standard_error
    from firesteel.master.launcher import lead_program
    from firesteel.master.led_application import LedApplication

    group = leader_settings(configuration)
    if group is None or configuration.get(options.TARGET) == "remote":
        raise click.UsageError(
            "--ha needs high-availability.type, high-availability.storageDir and "
            "high-availability.cluster-id, and no -m: the jobs of a session outlive their programs "
            "anyway, if the session has several masters."
        )
    log_to_standard_error("run")
    application = LedApplication(group)
    atexit.register(application.close)
    if not application.wait(_PATIENCE_SECONDS):
        click.echo(f"A different program leads {group.group}. This one waits.", err=True)
        application.wait()
    for option in (checkpoint_options.CHECKPOINT_DIR, rest_options.ARCHIVE_DIR):
        shared = with_shared_directories(configuration, group).get(option)
        settings.set_string(option.key, str(shared))
    set_command_line(settings)
    lead_program(application)
    return load_configuration()


def _settings(given: dict[str, Any]) -> Configuration:
    """Return the settings that Flink's options stand for."""
    settings = given_settings(given["settings"])
    for name, key in (
        ("files", "python.files"),
        ("requirements", "python.requirements"),
        ("archives", "python.archives"),
        ("executable", "python.executable"),
        ("savepoint", "execution.state-recovery.path"),
        ("claim_mode", "execution.state-recovery.claim-mode"),
        ("parallelism", "parallelism.default"),
        ("target", "execution.target"),
    ):
        if given.get(name) is not None:
            settings.set_string(key, str(given[name]))
    if given.get("allow_lost"):
        settings.set_string("execution.state-recovery.ignore-unclaimed-state", "true")
    if given.get("cancel_on_exit"):
        settings.set_string("execution.shutdown-on-attached-exit", "true")
    return settings


def _place(settings: Configuration, given: dict[str, Any]) -> None:
    """Decide between a session and this process."""
    from urllib.parse import urlsplit

    from firesteel.client.rest_client import url_of
    from firesteel.config import options, rest_options

    if given["address"] is not None:
        address, _, more = given["address"].partition(",")
        parts = urlsplit(url_of(address))
        settings.set(options.TARGET, "remote")
        settings.set_string("rest.address", str(parts.hostname))
        settings.set_string("rest.port", str(parts.port))
        if more:
            settings.set(rest_options.REST_MASTERS, more)
        if parts.scheme == "https":
            settings.set_string("security.ssl.rest.enabled", "true")
    if settings.get_optional(options.TARGET) == "remote":
        settings.set(options.ATTACHED, not given["detached"])
        return
    if given["detached"]:
        raise click.UsageError(
            "-d needs a session that runs the job: name one with -m host:port, and start one with "
            "'firesteel session start -d'."
        )
    if not settings.contains(rest_options.REST_ENABLED):
        settings.set(rest_options.REST_ENABLED, True)
    if not settings.contains(rest_options.REST_PORT) and not settings.contains(
        rest_options.REST_BIND_PORT
    ):
        settings.set(rest_options.REST_BIND_PORT, _PORTS)


def _program(given: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the program, and its arguments."""
    arguments = list(given["arguments"])
    program = given["script"] or given["module"]
    if program is None:
        if not arguments:
            raise click.UsageError("Missing the program. For example: firesteel run job.py")
        program = arguments.pop(0)
    if given["module"] is None and not Path(program).is_file():
        raise click.UsageError(f"There is no program {program}.")
    for path in (given["files"] or "").split(","):
        if path.strip():
            entry = Path(path.strip()).absolute()
            sys.path.insert(0, str(entry.parent if entry.suffix == ".py" else entry))
    for path in reversed((given["python_path"] or "").split(os.pathsep)):
        if path:
            sys.path.insert(0, os.path.abspath(path))
    return str(program), arguments


def _use_interpreter(given: dict[str, Any]) -> None:
    """Start over with the Python that -pyclientexec names."""
    wanted = given["client_executable"]
    if wanted is None or os.path.realpath(wanted) == os.path.realpath(sys.executable):
        return
    start = sys.argv.index("run") if "run" in sys.argv else sys.argv.index("info")
    os.execv(wanted, [wanted, "-m", "firesteel", *sys.argv[start:]])


def _execute(program: str, arguments: list[str], *, module: bool) -> None:
    """Run a program as ``__main__`` of this process. Its errors are shown as Flink shows them."""
    from firesteel.master.launcher import program_failed

    sys.argv = [program, *arguments]
    try:
        if module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            _execute_file(program)
    except SystemExit as end:
        if end.code not in (None, 0):
            program_failed()
        raise
    except Exception as error:  # noqa: BLE001 - the program is the user's
        program_failed()
        click.echo("\n" + "-" * 60, err=True)
        click.echo(" The program finished with the following exception:\n", err=True)
        trace = _within(program, error.__traceback__)
        click.echo("".join(traceback.format_exception(type(error), error, trace)), err=True)
        raise SystemExit(1) from None


def _execute_file(program: str) -> None:
    """Run a file. Its module stays ``__main__``: jobs may outlive its last line."""
    path = os.path.abspath(program)
    main = ModuleType("__main__")
    main.__file__ = path
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    sys.path.insert(0, os.path.dirname(path))
    code = compile(Path(path).read_bytes(), path, "exec")
    exec(code, main.__dict__)


def _within(program: str, trace: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback from the program on."""
    path = os.path.abspath(program)
    part = trace
    while part is not None:
        if part.tb_frame.f_code.co_filename == path:
            return part
        part = part.tb_next
    return trace


class _PlanReadyError(BaseException):
    """Ends the program when its job is compiled. The program must not catch it."""

    def __init__(self, plan: str) -> None:
        super().__init__()
        self.plan = plan


@click.command(context_settings={"allow_interspersed_args": False})
@_program_options
@address_option
@json_option
@click.argument(
    "arguments", nargs=-1, type=click.UNPROCESSED, metavar="PROGRAM|JOB_ID [ARGUMENTS]..."
)
def info(**given: Any) -> None:
    """Print the plan of the program PROGRAM as JSON, without running its job.

    With the id of a running job, show its vertices and the root of back pressure.

    \b
    Examples:
        firesteel info -p 4 job.py
        firesteel info 5e20cb6b0f357591171dfcca2eea09de
    """
    if given["arguments"] and _JOB_ID.fullmatch(given["arguments"][0]):
        # Options after the id belong to this command, not to a program.
        after = info_of_job.make_context("info", list(given["arguments"])).params
        show_job(
            after["job_id"],
            after["address"] or given["address"],
            (*given["settings"], *after["settings"]),
            after["as_json"] or given["as_json"],
        )
        return
    from firesteel.config.loader import set_command_line
    from firesteel.datastream.stream_execution_environment import program as programs
    from firesteel.graph.rendering import plan_json

    program, arguments = _program(given)
    _use_interpreter(given)
    with explained_errors():
        set_command_line(_settings(given))

    def stop(job: Any) -> None:
        raise _PlanReadyError(plan_json(job.stream_graph))

    programs.before_launch.append(stop)
    try:
        _execute(program, arguments, module=given["module"] is not None)
    except _PlanReadyError as ready:
        click.echo("----------------------- Execution Plan -----------------------")
        click.echo(ready.plan)
        click.echo("--------------------------------------------------------------")
        return
    raise click.ClickException("The program has no job: it does not call execute().")
