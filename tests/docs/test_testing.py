"""The Python blocks of docs/testing.md run, in order, in one namespace."""

from __future__ import annotations

import re
from pathlib import Path

from firesteel import testing

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def test_the_page_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 8
    namespace = {"__name__": "testing_page"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), namespace)


def test_the_page_has_every_fault():
    for fault in testing.Fault:
        assert f"| `{fault.name}` |" in PAGE.read_text()
    for kind in testing.StorageFaultKind:
        assert f"| `{kind.name}` |" in PAGE.read_text()
