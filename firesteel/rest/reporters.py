"""Metric reporters, with Flink's settings ``metrics.reporters`` and ``metrics.reporter.<name>.*``."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any, Protocol

from firesteel.common.configuration import Configuration
from firesteel.config import rest_options
from firesteel.config.values import DURATION
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.errors import ConfigurationError
from firesteel.rest.prometheus import CONTENT_TYPE, Sample, exposition, samples
from firesteel.stability import experimental

__all__ = ["LogReporter", "MetricReporter", "PrometheusReporter", "Reporters"]

_log = logging.getLogger("firesteel.metrics")

_PREFIX = "metrics.reporter."
_INTERVAL = timedelta(seconds=10)


@experimental
class MetricReporter(Protocol):
    """Sends metrics to a system of your own. Not in PyFlink.

    The setting ``metrics.reporter.<name>.factory.class`` names a class with these methods, as
    ``module:Class`` or ``module.Class``. Firesteel creates it without arguments.

    >>> class LargestValues:
    ...     def open(self, settings, dispatcher):
    ...         self.count = int(settings.get("count", "3"))
    ...     def report(self, samples):
    ...         largest = sorted(samples, key=lambda sample: sample[2])[-self.count :]
    ...         print([(name, value) for name, labels, value in largest])
    ...     def close(self):
    ...         print("closed")
    >>> reporter = LargestValues()
    >>> reporter.open({"count": "1"}, None)
    >>> reporter.report([("records", {"job": "orders"}, 7.0), ("restarts", {}, 0.0)])
    [('records', 7.0)]
    >>> reporter.close()
    closed
    """

    def open(self, settings: Mapping[str, str], dispatcher: Dispatcher) -> None:
        """Called once, before the first report.

        Args:
            settings: The settings of this reporter, without their prefix.
            dispatcher: The jobs of the driver. Its methods are internal.
        """

    def report(self, samples: Sequence[Sample]) -> None:
        """Called once per interval, with all metrics.

        Args:
            samples: The name, the labels and the value of each metric.
        """

    def close(self) -> None:
        """Called once, after the last report."""


class LogReporter:
    """Writes all metrics to the logger ``firesteel.metrics``, at the level INFO."""

    def open(self, settings: Mapping[str, str], dispatcher: Dispatcher) -> None:
        """Do nothing."""

    def report(self, samples: Sequence[Sample]) -> None:
        lines = []
        for name, labels, value in samples:
            where = ", ".join(f"{key}={label}" for key, label in labels.items() if key != "host")
            lines.append(f"{name}{{{where}}}: {value:g}")
        _log.info("metrics report\n%s", "\n".join(lines))

    def close(self) -> None:
        """Do nothing."""


class PrometheusReporter:
    """Serves metrics on a port of their own, 9249 unless ``port`` says otherwise.

    The REST server has the same metrics at ``/metrics``.
    """

    def open(self, settings: Mapping[str, str], dispatcher: Dispatcher) -> None:
        self._server = _bound(settings.get("port", "9249"), settings.get("host", "localhost"))
        self._server.dispatcher = dispatcher
        self.port: int = self._server.server_address[1]
        thread = threading.Thread(
            target=self._server.serve_forever, name="firesteel-prometheus", daemon=True
        )
        thread.start()

    def report(self, samples: Sequence[Sample]) -> None:
        """Do nothing: Prometheus asks."""

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _PrometheusServer(ThreadingHTTPServer):
    daemon_threads = True
    dispatcher: Dispatcher


class _PrometheusHandler(BaseHTTPRequestHandler):
    server: _PrometheusServer

    def do_GET(self) -> None:
        body = exposition(self.server.dispatcher).encode()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        _log.debug(format, *args)


def _bound(ports: str, host: str) -> _PrometheusServer:
    """Bind the first free port of a range such as ``9250-9260``."""
    first, _, last = ports.partition("-")
    try:
        candidates = range(int(first), int(last or first) + 1)
    except ValueError:
        candidates = range(0)
    for port in candidates:
        try:
            return _PrometheusServer((host, port), _PrometheusHandler)
        except OSError as error:
            _log.debug("port %d of the Prometheus reporter: %s", port, error)
    raise ConfigurationError(
        f"The Prometheus reporter found no free port in {ports!r}.", key=f"{_PREFIX}*.port"
    )


# Short names, and the names of Flink's factories.
_KNOWN: dict[str, type[MetricReporter]] = {
    "log": LogReporter,
    "prometheus": PrometheusReporter,
    "org.apache.flink.metrics.slf4j.Slf4jReporterFactory": LogReporter,
    "org.apache.flink.metrics.prometheus.PrometheusReporterFactory": PrometheusReporter,
}


class Reporters:
    """The reporters of a dispatcher. Each has a thread that calls it once per interval."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self.reporters: dict[str, MetricReporter] = {}
        for name, settings in _declared(dispatcher.configuration):
            reporter = _make(name, settings.get("factory.class"))
            reporter.open(settings, dispatcher)
            self.reporters[name] = reporter
            interval = DURATION.parse(settings.get("interval", _INTERVAL)).total_seconds()
            thread = threading.Thread(
                target=self._run,
                args=(name, reporter, interval),
                name=f"firesteel-reporter-{name}",
                daemon=True,
            )
            self._threads.append(thread)
            thread.start()

    def _run(self, name: str, reporter: MetricReporter, interval: float) -> None:
        while not self._stopped.wait(interval):
            try:
                reporter.report(list(samples(self._dispatcher)))
            except Exception:  # noqa: BLE001 - a reporter is user code, and must not end
                _log.exception("the metrics reporter %r failed", name)

    def close(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(5.0)
        for name, reporter in self.reporters.items():
            try:
                reporter.close()
            except Exception:  # noqa: BLE001 - the others must be closed too
                _log.exception("the metrics reporter %r could not be closed", name)


def _declared(configuration: Configuration) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the reporters by name with their settings.

    Without ``metrics.reporters`` all that have a class are started, as in Flink.
    """
    found: dict[str, dict[str, str]] = {}
    for key, value in configuration.to_dict().items():
        if key.startswith(_PREFIX):
            name, _, rest = key.removeprefix(_PREFIX).partition(".")
            found.setdefault(name, {})[rest] = value
    listed = configuration.get(rest_options.METRICS_REPORTERS)
    wanted = None if listed is None else [name.strip() for name in listed.split(",")]
    for name in found if wanted is None else wanted:
        yield name, found.get(name, {})


def _make(name: str, factory: str | None) -> MetricReporter:
    key = f"{_PREFIX}{name}.factory.class"
    if factory is None:
        raise ConfigurationError(f"{key} is missing: log, prometheus, or module:Class.", key=key)
    known = _KNOWN.get(factory)
    if known is not None:
        return known()
    module, _, attribute = factory.replace(":", ".").rpartition(".")
    try:
        reporter: MetricReporter = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigurationError(
            f"{key}: {factory!r} cannot be created: {error}. Use log, prometheus, or module:Class.",
            key=key,
        ) from error
    return reporter
