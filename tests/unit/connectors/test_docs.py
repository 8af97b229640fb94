"""The Python blocks of docs/connectors.md run, in order, in one namespace."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import tempfile
from pathlib import Path

import pytest

from firesteel.datastream import connectors

PAGE = Path(__file__).parents[3] / "docs" / "connectors.md"
MODULES = [
    module.name for module in pkgutil.walk_packages(connectors.__path__, f"{connectors.__name__}.")
]


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    namespace = {"__name__": "connectors_page"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), namespace)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
