"""Where print() sinks write: the driver's standard output."""

from __future__ import annotations

import sys


def print_lines(lines: list[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
