"""The Python blocks of docs/time.md and docs/windows.md that need no Spark run, in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_DOCS = Path(__file__).parents[2] / "docs"
_IMPORTS = """
from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream import OutputTag, TimeWindow
from firesteel.datastream.window import *
from firesteel.testing import OperatorHarness
"""


@pytest.mark.parametrize("page", ["time.md", "windows.md"])
def test_the_page_runs(page):
    text = (_DOCS / page).read_text()
    blocks = re.findall(r"(<!-- runs -->\n)?^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    namespace = {"__name__": page}
    exec(_IMPORTS, namespace)
    for number, (on_spark, block) in enumerate(blocks):
        if not on_spark:
            exec(compile(block, f"{page}, block {number}", "exec"), namespace)
