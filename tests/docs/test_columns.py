"""The programs of docs/columns.md run on the harness, in order, and print the text after them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.harness_launcher import on_harness

_PAGE = Path(__file__).parents[2] / "docs" / "columns.md"


def test_the_page_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```",
        _PAGE.read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert len(blocks) == 4
    namespace: dict[str, Any] = {"__name__": "columns_page"}
    for number, (program, expected) in enumerate(blocks):
        with on_harness():
            exec(compile(program, f"{_PAGE.name}, block {number}", "exec"), namespace)
        assert capsys.readouterr().out == expected
