"""Settings that jobs of one application share, and settings of a single job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.common.configuration import Configuration
from firesteel.spark.session import compiler_options, host_settings


def test_jobs_share_hosts_and_each_says_how_long_they_stay() -> None:
    context = SimpleNamespace(applicationId="app-of-this-test", master="local[2]")
    session: Any = SimpleNamespace(sparkContext=context)
    first, second = (host_settings(session, seconds) for seconds in (60.0, 5.0))
    assert (first.application, first.token) == (second.application, second.token)
    assert (first.idle_timeout, second.idle_timeout) == (60.0, 5.0)
    own = host_settings(session, 5.0, only_job="0123456789")
    assert own.directory != first.directory


@pytest.mark.parametrize(
    ("setting", "is_for_live_job", "optimizes"),
    [
        (None, True, False),
        (None, False, True),
        ("true", True, True),
        ("false", False, False),
    ],
)
def test_a_jvm_that_only_moves_rows_does_not_optimize_them(
    setting: str | None, is_for_live_job: bool, optimizes: bool
) -> None:
    configuration = Configuration()
    if setting is not None:
        configuration.set_string("firesteel.spark.optimizing-compiler", setting)
    options = compiler_options(configuration, is_for_live_job=is_for_live_job)
    expected = [
        "-XX:TieredStopAtLevel=1",
        "-XX:CompileThresholdScaling=0.1",
        "-XX:ReservedCodeCacheSize=240m",
    ]
    assert options == ([] if optimizes else expected)
