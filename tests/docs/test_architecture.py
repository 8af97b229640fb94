"""The figures of docs/architecture.md agree with the trace of the two jobs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_REPOSITORY = Path(__file__).parents[2]
_TRACED = re.compile(r"^(\w+)_job: (\d+) files, (\d+) on the path$", re.MULTILINE)
_ROW = re.compile(r"^\| (reduce|window) \| \d+ \| (\d+) \| \d+ \| (\d+) \|$", re.MULTILINE)
# Versions of Python differ by a file, and a small change need not touch the page.
_TOLERANCE = 3


def test_the_page_has_the_number_of_files_of_each_job() -> None:
    """If it fails, run ``python -m tools.trace_files`` and update the table."""
    # A process of its own: what other tests have cached would not run again.
    command = [sys.executable, "-m", "tools.trace_files"]
    traced = subprocess.run(command, cwd=_REPOSITORY, check=True, capture_output=True, text=True)
    page = (_REPOSITORY / "docs" / "architecture.md").read_text()
    documented = {name: (int(all_files), int(path)) for name, all_files, path in _ROW.findall(page)}
    counted = _TRACED.findall(traced.stdout)
    assert [name for name, _, _ in counted] == ["reduce", "window"]
    for name, all_files, path in counted:
        assert abs(documented[name][0] - int(all_files)) <= _TOLERANCE
        assert abs(documented[name][1] - int(path)) <= _TOLERANCE
