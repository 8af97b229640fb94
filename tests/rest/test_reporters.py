"""Reporters with Flink's settings."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.request import urlopen

import pytest

from firesteel.common.configuration import Configuration
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.errors import ConfigurationError
from firesteel.rest.reporters import PrometheusReporter, Reporters
from tests.waiting import wait_until


def reporters(**settings: str) -> Reporters:
    named = {f"metrics.{key.replace('__', '.')}": value for key, value in settings.items()}
    return Reporters(Dispatcher(Configuration.from_dict(named)))


class Own:
    calls: ClassVar[list[Any]] = []

    def open(self, settings: Mapping[str, str], dispatcher: Dispatcher) -> None:
        self.calls.append(dict(settings))

    def report(self, samples: Sequence[Any]) -> None:
        self.calls.append([name for name, _, _ in samples])
        raise RuntimeError("a reporter that fails is called again")

    def close(self) -> None:
        self.calls.append("closed")


def test_a_reporter_of_the_user() -> None:
    Own.calls.clear()
    running = reporters(
        reporter__mine__factory__class=f"{__name__}:Own",
        reporter__mine__interval="10 ms",
        reporter__mine__color="red",
    )
    wait_until(lambda: len(Own.calls) >= 3)
    running.close()
    assert Own.calls[0]["color"] == "red"
    assert "flink_jobmanager_numRunningJobs" in Own.calls[1]
    assert Own.calls[-1] == "closed"


def test_the_log_reporter(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="firesteel.metrics"):
        running = reporters(
            reporter__log__factory__class="org.apache.flink.metrics.slf4j.Slf4jReporterFactory",
            reporter__log__interval="10 ms",
        )
        wait_until(lambda: "flink_jobmanager_numRunningJobs{}: 0" in caplog.text)
        running.close()


def test_the_prometheus_reporter_has_a_port_of_its_own() -> None:
    running = reporters(reporter__prom__factory__class="prometheus", reporter__prom__port="0")
    reporter = running.reporters["prom"]
    assert isinstance(reporter, PrometheusReporter)
    with urlopen(f"http://localhost:{reporter.port}/metrics") as reply:
        assert b"flink_jobmanager_numRunningJobs" in reply.read()
    running.close()


def test_only_listed_reporters_start() -> None:
    running = reporters(
        reporters="a",
        reporter__a__factory__class="log",
        reporter__b__factory__class="nonsense",
    )
    assert list(running.reporters) == ["a"]
    running.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reporters": "a"}, "factory.class is missing"),
        ({"reporter__a__factory__class": "nothing"}, "cannot be created"),
        ({"reporter__a__factory__class": "os:missing"}, "cannot be created"),
        (
            {"reporter__a__factory__class": "prometheus", "reporter__a__port": "x"},
            "no free port in 'x'",
        ),
    ],
)
def test_wrong_settings(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        reporters(**settings)
