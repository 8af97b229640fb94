"""The figures of docs/architecture.md agree with the trace of the two jobs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_REPOSITORY = Path(__file__).parents[2]
_TRACED = re.compile(r"^(\w+)_job, ([\w-]+): (\d+) files, (\d+) on the path$", re.MULTILINE)
# The figures of both jobs: before, in real time, in micro-batches; first all files, then the path.
_ROW = re.compile(
    r"^\| (reduce|window) \| \d+ \| (\d+) \| (\d+) \| \d+ \| (\d+) \| (\d+) \|$", re.MULTILINE
)
_FILES = re.compile(r"`((?:firesteel/)?[a-z_]+/[\w/]+\.py)`")
# Versions of Python differ by a file, and a small change need not touch the page.
_TOLERANCE = 3


def test_the_page_has_the_number_of_files_of_each_job() -> None:
    """If it fails, run ``python -m tools.trace_files`` and update the table."""
    # A process of its own: what other tests have cached would not run again.
    command = [sys.executable, "-m", "tools.trace_files"]
    traced = subprocess.run(command, cwd=_REPOSITORY, check=True, capture_output=True, text=True)
    page = (_REPOSITORY / "docs" / "architecture.md").read_text()
    documented = {}
    for name, *row in _ROW.findall(page):
        live, batches, live_path, batches_path = map(int, row)
        documented[name, "real-time"] = (live, live_path)
        documented[name, "micro-batch"] = (batches, batches_path)
    counted = {
        (name, execution): (int(all_files), int(path))
        for name, execution, all_files, path in _TRACED.findall(traced.stdout)
    }
    assert sorted(counted) == sorted(documented)
    assert len(counted) == 4
    for run, (all_files, path) in counted.items():
        assert abs(documented[run][0] - all_files) <= _TOLERANCE
        assert abs(documented[run][1] - path) <= _TOLERANCE


def test_the_page_names_files_that_exist() -> None:
    page = (_REPOSITORY / "docs" / "architecture.md").read_text()
    named = {name.removeprefix("firesteel/") for name in _FILES.findall(page)}
    outside = {"tests/architecture/test_imports.py"}
    assert outside < named
    missing = [name for name in named - outside if not (_REPOSITORY / "firesteel" / name).is_file()]
    assert missing == []


def test_the_page_names_every_room() -> None:
    page = (_REPOSITORY / "docs" / "architecture.md").read_text()
    rooms = [path.parent.name for path in (_REPOSITORY / "firesteel").glob("*/__init__.py")]
    assert [room for room in rooms if f"`firesteel/{room}`" not in page] == []


def test_the_page_names_the_files_that_records_meet() -> None:
    """The table has the files that a reader has to open. The trace also counts their helpers."""
    page = (_REPOSITORY / "docs" / "architecture.md").read_text()
    section = page.partition("## A record from map to print")[2]
    path = section.partition("In micro-batches")[0]
    assert 20 <= len(set(_FILES.findall(path))) <= 27
