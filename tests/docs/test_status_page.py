"""docs/status.md lists every capability, and the tests that it names exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).parents[2]
_ROW = re.compile(r"^\| ([A-Z]\d+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)
_ROWS = _ROW.findall((_REPOSITORY / "docs/status.md").read_text())
_NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")
_COUNTS = {"A": 8, "B": 10, "C": 9, "D": 4, "E": 5, "F": 13, "G": 4, "H": 6, "Z": 9}


def test_no_capability_is_missing_and_none_is_there_twice() -> None:
    expected = [f"{part}{n}" for part, count in _COUNTS.items() for n in range(1, count + 1)]
    assert [key for key, *_ in _ROWS] == expected


@pytest.mark.parametrize(("key", "mark", "capability", "proof"), _ROWS, ids=[r[0] for r in _ROWS])
def test_what_is_done_is_proved(key: str, mark: str, capability: str, proof: str) -> None:
    named = _NAMED.findall(proof)
    assert capability
    assert mark in {"✅ done", "partly", "not yet"}
    assert bool(named) >= mark.endswith("done")
    assert not (named and mark == "not yet")


@pytest.mark.parametrize("page", sorted((_REPOSITORY / "docs").glob("*.md")), ids=lambda p: p.name)
def test_tests_that_are_named_exist(page: Path) -> None:
    named = _NAMED.findall(page.read_text())
    assert [f"{path}::{name}" for path, name in named if name not in _tests_in(path)] == []


@cache
def _tests_in(path: str) -> frozenset[str]:
    file = _REPOSITORY / path
    if not file.is_file() or not file.name.startswith("test_"):
        return frozenset()
    return frozenset(
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )
