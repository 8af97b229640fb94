"""The logger ``firesteel``, with and without handlers of the program."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from firesteel.log import set_log_level


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("firesteel")
    before, logger.handlers = logger.handlers, []
    yield logger
    logger.handlers = before
    logger.setLevel(logging.NOTSET)


def _forget_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the handlers of pytest, as in a program that has not set up logging."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])


def test_the_setting_shows_what_it_says_once(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _forget_handlers(monkeypatch)
    set_log_level("INFO")
    set_log_level("INFO")
    logger.info("restored")
    logger.debug("details")
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.endswith(" INFO firesteel: restored\n")
    assert output.err.count("\n") == 1
    set_log_level("ERROR")
    logger.warning("hm")
    assert capsys.readouterr().err == ""


def test_handlers_of_the_program_are_used_whenever_they_come(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _forget_handlers(monkeypatch)
    set_log_level("INFO")
    records: list[str] = []

    class Own(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record.getMessage())

    root = logging.getLogger()
    level = root.level
    root.addHandler(Own())
    logger.info("restored")
    assert records == ["restored"]
    assert capsys.readouterr().err == ""
    assert root.level == level
