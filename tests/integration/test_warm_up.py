"""The small job with which a standby warms its Spark session up."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.dispatcher import session as sessions
from firesteel.dispatcher.session import SessionDispatcher


@pytest.mark.parametrize("directory", [None, "settings"])
def test_a_small_job_warms_spark_up_whatever_the_settings_are(
    directory: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: Any
) -> None:
    if directory is not None:
        # With these the job would go to a session.
        (tmp_path / "settings").mkdir()
        (tmp_path / "settings" / "config.yaml").write_text("execution.target: remote\n")
        monkeypatch.setenv("FIRESTEEL_CONF_DIR", str(tmp_path / "settings"))
    monkeypatch.setattr(sessions, "stop_own_session", lambda: None)
    settings = {"taskmanager.numberOfTaskSlots": "4", "firesteel.working-dir": str(tmp_path)}
    dispatcher = SessionDispatcher(Configuration.from_dict(settings))
    try:
        with caplog.at_level(logging.INFO, logger="firesteel"):
            dispatcher.warm_up()
        assert "Spark is warm" in caplog.text
        assert dispatcher.jobs() == []
    finally:
        dispatcher.close()
