"""The commands ``session start``, ``session stop`` and ``session list``, and ``history-server``."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firesteel.cli.progress import progress
from firesteel.cli.settings import (
    address_option,
    configuration_of,
    explained_errors,
    json_option,
    print_json,
    session_client,
    settings_option,
)

if TYPE_CHECKING:
    from firesteel.common.configuration import Configuration

_START_SECONDS = 180.0
_STOP_SECONDS = 120.0


@click.group()
def session() -> None:
    """Start, stop and list sessions, which run jobs of many programs on one Spark application.

    \b
    Examples:
        firesteel session start -d
        firesteel run -m localhost:8081 job.py
        firesteel session stop
    """


@session.command()
@click.option("--master", metavar="URL", help="Spark's master, for example 'local[64]'.")
@click.option("--port", type=click.IntRange(0, 65535), help="The port of REST and dashboard.")
@click.option("-d", "--detached", is_flag=True, help="Return once the session has started.")
@click.option(
    "--standby",
    is_flag=True,
    help="Take over when the leader dies. It needs high-availability.type.",
)
@settings_option
@json_option
def start(
    master: str | None,
    port: int | None,
    detached: bool,
    standby: bool,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Start a session. It listens on localhost, port 8081, unless the settings say otherwise.

    \b
    Examples:
        firesteel session start --master 'local[64]' -d
        firesteel session start --standby --port 8082 -Dhigh-availability.type=filesystem ...
    """
    if master is not None:
        settings = (*settings, f"firesteel.spark.master={master}")
    if port is not None:
        settings = (*settings, f"rest.port={port}")
    with explained_errors():
        _check_standby(configuration_of(settings), standby)
        if detached:
            known = _start_process(settings)
        else:
            run_session(settings)
            return
    if as_json:
        print_json({"url": known.url, "processId": known.process_id, "log": known.log})
    else:
        click.echo(f"Session started at {known.url} (process {known.process_id}).")
        click.echo(f"Its log is {known.log}")


def _check_standby(configuration: Configuration, standby: bool) -> None:
    from firesteel.leader.settings import leader_settings

    if leader_settings(configuration) is None and standby:
        raise click.UsageError(
            "--standby needs several masters: set high-availability.type, and the same "
            "high-availability.storageDir and high-availability.cluster-id for all of them."
        )


def run_session(settings: tuple[str, ...]) -> None:
    """Run a session in this process until it is stopped."""
    from firesteel.client.sessions import KnownSession, remember
    from firesteel.config import rest_options
    from firesteel.dispatcher.leadership import (
        SessionLeadership,
        shared_token,
        with_shared_directories,
    )
    from firesteel.dispatcher.session import SessionDispatcher
    from firesteel.leader.settings import leader_settings
    from firesteel.logs import log_to_standard_error
    from firesteel.rest.server import RestServer
    from firesteel.rest.standby import StandbyRedirect
    from firesteel.rest.submission import session_endpoints

    log_to_standard_error("session")
    configuration = configuration_of(settings)
    token = configuration.get(rest_options.REST_TOKEN) or secrets.token_urlsafe(32)
    group = leader_settings(configuration)
    if group is not None:
        configuration = with_shared_directories(configuration, group)
        token = configuration.get(rest_options.REST_TOKEN) or shared_token(group)
    dispatcher = SessionDispatcher(configuration)
    leadership = standby = None
    try:
        if group is not None:
            leadership = SessionLeadership(dispatcher, group)
            standby = partial(StandbyRedirect, term=leadership.term, leader=leadership.leader)
        server = RestServer(dispatcher, more=session_endpoints(dispatcher, token), standby=standby)
        if leadership is not None:
            leadership.stand(server.url)
    except BaseException:
        dispatcher.close()
        raise
    dispatcher.url = server.url
    dispatcher.watch_spark()
    file = remember(
        KnownSession(
            server.url,
            os.getpid(),
            token,
            int(time.time() * 1000),
            socket.gethostname(),
            os.environ.get("FIRESTEEL_SESSION_LOG"),
        )
    )
    # Not earlier: Spark sets handlers of its own.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: dispatcher.stop_requested.set())
    click.echo(
        f"Session started at {server.url}. Ctrl-C stops it, and suspends its jobs.", err=True
    )
    try:
        dispatcher.stop_requested.wait()
        click.echo("The session ends.", err=True)
    finally:
        file.unlink(missing_ok=True)
        dispatcher.close()
        if leadership is not None:
            # Not earlier: no job of this master runs any more.
            leadership.close()
        server.close()
    if dispatcher.failure is not None:
        raise dispatcher.failure


def _start_process(settings: tuple[str, ...]) -> Any:
    """Start a session in a process of its own, and return it once it answers."""
    from firesteel.client.sessions import known_sessions, sessions_directory

    directory = sessions_directory()
    directory.mkdir(parents=True, exist_ok=True)
    descriptor, log = tempfile.mkstemp(prefix="session-", suffix=".log", dir=directory)
    with os.fdopen(descriptor, "wb") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "firesteel",
                "session",
                "start",
                *(f"-D{setting}" for setting in settings),
            ],
            env={**os.environ, "FIRESTEEL_SESSION_LOG": log},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + _START_SECONDS
    with progress("starting the session"):
        while time.monotonic() < deadline:
            for known in known_sessions():
                if known.process_id == process.pid:
                    return known
            if process.poll() is not None:
                text = Path(log).read_text(errors="replace").strip()
                raise click.ClickException(f"The session did not start:\n{text}")
            time.sleep(0.1)
    process.kill()
    raise click.ClickException(f"The session did not start within {_START_SECONDS:.0f} s: {log}")


@session.command()
@address_option
@settings_option
@json_option
def stop(address: str | None, settings: tuple[str, ...], as_json: bool) -> None:
    """Stop a session. Its jobs are suspended: their checkpoints stay.

    \b
    Example:
        firesteel session stop -m localhost:8081
    """
    from firesteel.client.rest_client import until_true
    from firesteel.client.sessions import session_at

    with explained_errors("Could not stop the session."):
        client = session_client(address, settings)
        known = session_at(client.url)
        client.delete("/cluster")
        with progress("stopping the session"):
            gone = known is None or until_true(lambda: not known.is_alive, _STOP_SECONDS)
    if not gone:
        raise click.ClickException(f"The session at {client.url} still runs.")
    if as_json:
        print_json({"url": client.url})
    else:
        click.echo(f"Session at {client.url} stopped.")


@session.command("list")
@click.option("--token", "with_token", is_flag=True, help="Show the token for submissions, too.")
@json_option
def list_sessions(with_token: bool, as_json: bool) -> None:
    """List the sessions that you have started on this machine.

    \b
    Example:
        firesteel session list --json
    """
    from firesteel.client.rest_client import RestClient
    from firesteel.client.sessions import known_sessions
    from firesteel.errors import FiresteelError

    found = []
    for known in known_sessions():
        entry: dict[str, Any] = {
            "url": known.url,
            "processId": known.process_id,
            "started": known.started,
            "log": known.log,
        }
        if with_token:
            entry["token"] = known.token
        try:
            overview = RestClient(known.url).get("/overview")
            entry["jobsRunning"] = overview["jobs-running"]
            entry["slotsTotal"] = overview["slots-total"]
            entry["slotsAvailable"] = overview["slots-available"]
        except FiresteelError as error:
            entry["error"] = str(error)
        found.append(entry)
    if as_json:
        print_json({"sessions": found})
        return
    if not found:
        click.echo("No sessions.")
    for entry in found:
        started = time.strftime("%d.%m.%Y %H:%M:%S", time.localtime(entry["started"] / 1000))
        state = entry.get("error") or (
            f"{entry['jobsRunning']} jobs running, {entry['slotsAvailable']} of "
            f"{entry['slotsTotal']} slots free"
        )
        click.echo(f"{started} : {entry['url']} : process {entry['processId']} ({state})")
        if with_token:
            click.echo(f"    token {entry['token']}")


@click.command("history-server")
@click.option("--port", type=click.IntRange(0, 65535), help="The port. The default is 8082.")
@settings_option
def history_server(port: int | None, settings: tuple[str, ...]) -> None:
    """Serve the jobs of an archive, with REST and dashboard, until Ctrl-C.

    \b
    Example:
        firesteel history-server -Dhistoryserver.archive.fs.dir=/data/archive
    """
    from firesteel.common.configuration import Configuration
    from firesteel.config import rest_options
    from firesteel.dispatcher.history import HistoryDispatcher
    from firesteel.rest.server import RestServer

    with explained_errors():
        configuration = Configuration(configuration_of(settings))
        configuration.set(
            rest_options.REST_PORT,
            configuration.get(rest_options.HISTORY_PORT) if port is None else port,
        )
        configuration.remove_config(rest_options.REST_BIND_PORT.key)
        address = configuration.get(rest_options.HISTORY_ADDRESS)
        if address is not None:
            configuration.set(rest_options.REST_BIND_ADDRESS, address)
        dispatcher = HistoryDispatcher(configuration)
        server = RestServer(dispatcher)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    click.echo(f"History server started at {server.url}. Ctrl-C stops it.", err=True)
    ended.wait()
    dispatcher.close()
    server.close()
