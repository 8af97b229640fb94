"""Settings that jobs of one application share, and settings of a single job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from firesteel.spark.session import host_settings


def test_jobs_share_hosts_and_each_says_how_long_they_stay() -> None:
    context = SimpleNamespace(applicationId="app-of-this-test", master="local[2]")
    session: Any = SimpleNamespace(sparkContext=context)
    first, second = (host_settings(session, seconds) for seconds in (60.0, 5.0))
    assert (first.application, first.token) == (second.application, second.token)
    assert (first.idle_timeout, second.idle_timeout) == (60.0, 5.0)
    own = host_settings(session, 5.0, only_job="0123456789")
    assert own.directory != first.directory
