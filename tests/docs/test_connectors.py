"""The Python blocks of docs/connectors.md and docs/kafka.md run, each page in one namespace."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import tempfile
from pathlib import Path

import pytest

from firesteel.datastream import connectors

DOCS = Path(__file__).parents[2] / "docs"
MODULES = [
    module.name for module in pkgutil.walk_packages(connectors.__path__, f"{connectors.__name__}.")
]


@pytest.mark.parametrize(("page", "least"), [("connectors.md", 5), ("kafka.md", 3)])
def test_the_page_runs(tmp_path, monkeypatch, page, least):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = (DOCS / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= least
    namespace = {"__name__": "connectors_page"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}, block {number}", "exec"), namespace)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
