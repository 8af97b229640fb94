"""Prints the share of PyFlink's names that work."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    from tests.compat.report import share

    terminalreporter.write_line(f"PyFlink 2.3 compatibility: {share()} work")
