"""The Python blocks of the pages about connectors run, each page in one namespace."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("connectors.md", 5),
        ("formats.md", 3),
        ("kafka.md", 3),
        ("databases.md", 3),
        ("postgres-cdc.md", 1),
        ("rabbitmq.md", 1),
        ("elasticsearch.md", 1),
        ("writing-connectors.md", 3),
    ],
)
def test_the_page_runs(tmp_path, monkeypatch, page, least):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = (DOCS / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= least
    namespace = {"__name__": "connectors_page"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}, block {number}", "exec"), namespace)
