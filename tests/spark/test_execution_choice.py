"""The choice between real-time and micro-batch, with a Spark session that only answers questions."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkConf

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import ConfigurationError
from firesteel.spark import execution_choice
from firesteel.spark.session import LIVE_SETTINGS


def _choose(monkeypatch: pytest.MonkeyPatch, master: str, free: int, execution: str) -> bool:
    conf = SparkConf(loadDefaults=False)
    for key, value in LIVE_SETTINGS.items():
        conf.set(key, value)
    context = SimpleNamespace(getConf=lambda: conf, master=master)
    session: Any = SimpleNamespace(sparkContext=context, version="4.3.0")
    monkeypatch.setattr(execution_choice, "_has_real_time_mode", lambda _: True)
    monkeypatch.setattr(execution_choice, "live_slots", lambda _: free)
    configuration = Configuration()
    configuration.set_string("firesteel.execution", execution)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    env.from_sequence(1, 10).key_by(lambda n: n % 3).map(str).rebalance().print()
    job = env._compile("choice")
    return execution_choice.choose_live(session, job.stream_graph, job.levels, job.settings)


@pytest.mark.parametrize("execution", ["auto", "real-time"])
def test_enough_slots_for_all_levels_mean_real_time(
    monkeypatch: pytest.MonkeyPatch, execution: str
) -> None:
    assert _choose(monkeypatch, "local[6]", 6, execution)


@pytest.mark.parametrize(
    ("master", "setting"),
    [("local[5]", "firesteel.spark.master: local[6]"), ("spark://one:7077", "spark.cores.max")],
)
def test_the_error_for_too_few_slots_has_their_number_and_the_setting(
    monkeypatch: pytest.MonkeyPatch, master: str, setting: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        _choose(monkeypatch, master, 5, "real-time")
    message = str(caught.value)
    assert "needs 6 task slots at the same time (2 + 2 + 2, for all levels together)" in message
    assert "5 of Spark's are free" in message
    assert setting in message


def test_auto_takes_micro_batches_instead(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "firesteel"):
        assert not _choose(monkeypatch, "local[5]", 5, "auto")
    assert "runs in micro-batches, because the job needs 6 task slots" in caplog.text


def test_the_manual_lists_the_settings_that_a_session_needs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "execution.md").read_text()
    listed = dict(re.findall(r"^(spark\.\S+) +(\S+)$", page, re.MULTILINE))
    assert listed == LIVE_SETTINGS
