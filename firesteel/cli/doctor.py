"""The command ``doctor``: checks the machine, and gives advice."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

import click

from firesteel.cli.settings import configuration_of, json_option, print_json, settings_option
from firesteel.errors import FiresteelError
from firesteel.processes import physical_memory

_LEAST_MEMORY = 2 << 30
_LEAST_DISK = 1 << 30
_CONNECT_SECONDS = 3.0
EXTRAS = {
    "avro": ("fastavro", "files and messages in Avro"),
    "kafka": ("confluent_kafka", "Kafka sources and sinks"),
    "mysql": ("pymysql", "tables of MySQL and MariaDB"),
    "postgres": ("psycopg", "tables and change streams of PostgreSQL"),
    "rabbitmq": ("pika", "queues of RabbitMQ"),
    "rocksdb": ("rocksdict", "state larger than memory"),
    "s3": ("boto3", "several masters that elect a leader in S3"),
    "zookeeper": ("kazoo", "several masters that elect a leader with ZooKeeper"),
}
OK, WARNING, ERROR = "ok", "warning", "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. ``advice`` is the remedy for a problem."""

    check: str
    level: str
    text: str
    advice: str = ""


@click.command()
@settings_option
@json_option
def doctor(settings: tuple[str, ...], as_json: bool) -> None:
    """Check Java, Python, cores, memory, disk, ports, extras and the cluster.

    The exit code is 1 if jobs cannot run.

    \b
    Example:
        firesteel doctor -Dfiresteel.spark.master=spark://host:7077
    """
    findings = [finding for check in _CHECKS for finding in check(settings)]
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            mark = {OK: "ok     ", WARNING: "warning", ERROR: "ERROR  "}[finding.level]
            click.echo(f"{mark}  {finding.check}: {finding.text}")
            if finding.advice:
                click.echo(f"         {finding.advice}")
    if any(finding.level == ERROR for finding in findings):
        raise SystemExit(1)


def _python(_: tuple[str, ...]) -> Iterator[Finding]:
    yield Finding("Python", OK, f"{platform.python_version()} at {sys.executable}")


def _java(_: tuple[str, ...]) -> Iterator[Finding]:
    from firesteel.spark.java import find_java

    try:
        yield Finding("Java", OK, str(find_java()))
    except FiresteelError as error:
        yield Finding("Java", ERROR, "not found", str(error))


def _spark(_: tuple[str, ...]) -> Iterator[Finding]:
    if importlib.util.find_spec("pyspark") is None:
        yield Finding("Spark", ERROR, "PySpark is missing", "Run: pip install 'pyspark>=4.3,<4.4'")
        return
    from importlib.metadata import version

    yield Finding("Spark", OK, f"PySpark {version('pyspark')}")


def _machine(_: tuple[str, ...]) -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("Cores", OK, str(cores))
    memory = physical_memory()
    advice = "" if memory >= _LEAST_MEMORY else "Spark and a job need about 2 GiB."
    yield Finding("Memory", OK if not advice else WARNING, f"{memory / (1 << 30):.1f} GiB", advice)


def _disk(settings: tuple[str, ...]) -> Iterator[Finding]:
    from firesteel.config import options

    directory = configuration_of(settings).get(options.WORKING_DIR) or tempfile.gettempdir()
    try:
        free = shutil.disk_usage(directory).free
    except OSError as error:
        yield Finding(
            "Disk", ERROR, f"{directory}: {error}", f"Set {options.WORKING_DIR.key} to a directory."
        )
        return
    text = f"{free / (1 << 30):.1f} GiB free in {directory}"
    if not os.access(directory, os.W_OK):
        yield Finding("Disk", ERROR, f"{directory} cannot be written", "Change its permissions.")
    elif free < _LEAST_DISK:
        yield Finding("Disk", WARNING, text, f"Free some, or set {options.WORKING_DIR.key}.")
    else:
        yield Finding("Disk", OK, text)


def _settings(settings: tuple[str, ...]) -> Iterator[Finding]:
    from firesteel.config.loader import find_config_file

    file = find_config_file()
    configuration_of(settings)
    yield Finding("Settings", OK, "no config.yaml" if file is None else str(file))


def _port(settings: tuple[str, ...]) -> Iterator[Finding]:
    from firesteel.config import rest_options

    port = configuration_of(settings).get(rest_options.REST_PORT)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            yield Finding(
                "Port",
                WARNING,
                f"{port}: {error.strerror}",
                "A session runs there already (firesteel session list), or set rest.port.",
            )
            return
    yield Finding("Port", OK, f"{port} is free")


def _extras(_: tuple[str, ...]) -> Iterator[Finding]:
    for extra, (module, purpose) in EXTRAS.items():
        if importlib.util.find_spec(module) is not None:
            yield Finding(f"Extra {extra}", OK, "installed")
        else:
            yield Finding(
                f"Extra {extra}",
                OK,
                "not installed",
                f"For {purpose}: pip install 'firesteel[{extra}]'",
            )


def _cluster(settings: tuple[str, ...]) -> Iterator[Finding]:
    from firesteel.config import options

    master = configuration_of(settings).get(options.SPARK_MASTER) or "local"
    if master.startswith("local"):
        yield Finding("Cluster", OK, f"this machine ({master})")
        return
    nodes = _nodes(master)
    if not nodes:
        yield Finding(
            "Cluster",
            WARNING,
            f"{master}: its address is in the settings of Spark, so it was not checked",
        )
        return
    reached = [node for node in nodes if _answers(*node)]
    if reached:
        yield Finding("Cluster", OK, "{}:{} answers".format(*reached[0]))
    else:
        yield Finding(
            "Cluster",
            ERROR,
            f"{master} does not answer",
            "Start the master, or correct firesteel.spark.master.",
        )


def _nodes(master: str) -> list[tuple[str, int]]:
    """Return the hosts and ports of Spark's master, or nothing if its URL does not have them.

    >>> _nodes("spark://one:7077,two"), _nodes("k8s://https://cluster"), _nodes("yarn")
    ([('one', 7077), ('two', 7077)], [('cluster', 443)], [])
    """
    scheme, _, rest = master.partition("://")
    if scheme == "spark":
        default = 7077
    elif scheme == "k8s":
        default = 80 if rest.startswith("http://") else 443
        rest = rest.rpartition("//")[2]
    else:
        return []
    found = []
    for node in rest.split(","):
        try:
            parts = urlsplit(f"//{node}")
            port = parts.port
        except ValueError:
            continue
        if parts.hostname:
            found.append((parts.hostname, port or default))
    return found


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), _CONNECT_SECONDS):
            return True
    except OSError:
        return False


def _explained(
    check: Callable[[tuple[str, ...]], Iterator[Finding]],
) -> Callable[..., list[Finding]]:
    """Turn an error of a check into a finding."""

    def run(settings: tuple[str, ...]) -> list[Finding]:
        name = check.__name__.strip("_").capitalize()
        try:
            return list(check(settings))
        except FiresteelError as error:
            return [Finding(name, ERROR, "wrong settings", str(error))]

    return run


_CHECKS = [
    _explained(check)
    for check in (
        _python,
        _java,
        _spark,
        _machine,
        _disk,
        _settings,
        _port,
        _extras,
        _cluster,
    )
]
