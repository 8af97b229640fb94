"""The logger ``firesteel``, with and without handlers of the program, and copies of logs."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from firesteel.logs import LogBuffer, ProcessLogs, set_log_level


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


def test_a_buffer_keeps_the_end_of_the_text_and_drops_the_rest() -> None:
    buffer = LogBuffer(most=10)
    for number in range(100):
        buffer.write(f"{number} ")
    assert buffer.text() == "97 98 99 "
    buffer.write("x" * 50)
    assert buffer.text() == "x" * 10
    assert buffer.size == 10


def test_the_logs_of_a_process_have_its_place_and_its_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    with ProcessLogs("orders: Map (1/2)", owned=True) as logs:
        logging.getLogger("shop").info("the counter opens")
        logging.getLogger("shop").warning("the counter is empty")
        print("printed")
    assert " INFO  [orders: Map (1/2)] shop: the counter opens\n" in logs.text("log")
    assert logs.text("out") == "printed\n"
    written = capsys.readouterr()
    assert written.out == "printed\n"
    assert "the counter is empty" in written.err
    assert "the counter opens" not in written.err
    assert (root.level, root.handlers) == (level, handlers)


def test_the_logs_of_a_program_leave_its_logging_alone() -> None:
    """In a process of its own, because pytest sets up logging."""
    program = """
import logging, sys
from firesteel.logs import ProcessLogs, set_log_level

set_log_level("WARN")
with ProcessLogs("100 % driver", owned=False) as logs:
    logging.getLogger("firesteel").warning("from Firesteel")
    logging.getLogger("shop").warning("from a library")
    logging.basicConfig(level=logging.WARNING, format="configured: %(message)s")
    logging.getLogger("shop").info("too detailed")
    logging.getLogger("shop").warning("with details", extra={"place": "counter"})
print(logs.text("log"), end="")
logging.getLogger("shop").warning("after")
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    firesteel, *others = ran.stderr.splitlines()
    assert firesteel.endswith("WARNING firesteel: from Firesteel")
    assert others == ["from a library", "configured: with details", "configured: after"]
    assert [line.partition("[")[2] for line in ran.stdout.splitlines()] == [
        "100 % driver] firesteel: from Firesteel",
        "100 % driver] shop: from a library",
        "100 % driver] shop: with details",
    ]


def test_the_copy_of_the_output_has_text_only(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs probe a stream with bytes to find out whether it is binary."""
    with ProcessLogs("driver", owned=False) as logs:
        with pytest.raises(TypeError):
            sys.stdout.write(b"probe")  # type: ignore[arg-type]
        print("text")
        assert logs.text("out") == "text\n"
