"""Rules of style that a program can check, for the manual and for docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).parents[2]
_GENERATED = {"compatibility.md", "configuration.md"}
_PAGES = sorted(
    path
    for path in (*_REPOSITORY.glob("*.md"), *(_REPOSITORY / "docs").rglob("*.md"))
    if path.name not in _GENERATED
)
_MODULES = sorted((_REPOSITORY / "firesteel").rglob("*.py"))
_COLUMNS = 100
# A title or a docstring names its subject. It does not ask a question.
_RIDDLE = re.compile(r"(What|Which|Whether|How|Where|Who|Whoever)\b", re.IGNORECASE)
# A sentence names the component that acts.
_VAGUE = re.compile(r"\b(nobody|somebody|whoever)\b", re.IGNORECASE)


def _name(path: Path) -> str:
    return str(path.relative_to(_REPOSITORY))


def _prose_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines outside of code blocks and tables, with their numbers."""
    in_code = False
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.startswith("|"):
            yield number, line


def _can_be_wrapped(line: str) -> bool:
    """A single word, such as the name of a test, or a picture has no place to break."""
    return " " in line.strip() and not line.startswith("![")


@pytest.mark.parametrize("path", _PAGES, ids=_name)
def test_markdown_is_wrapped(path: Path) -> None:
    long = [
        f"line {number} has {len(line)} columns"
        for number, line in _prose_lines(path)
        if len(line) > _COLUMNS and _can_be_wrapped(line)
    ]
    assert long == []


@pytest.mark.parametrize("path", _PAGES, ids=_name)
def test_a_page_is_plain(path: Path) -> None:
    unclear = [
        f"line {number}: {line}"
        for number, line in _prose_lines(path)
        if _VAGUE.search(line) or (_RIDDLE.match(line.lstrip("# ")) and line.startswith("#"))
    ]
    assert unclear == []


@pytest.mark.parametrize("path", _MODULES, ids=_name)
def test_a_docstring_is_plain(path: Path) -> None:
    unclear = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            if _RIDDLE.match(text) or _VAGUE.search(text):
                unclear.append(f"{getattr(node, 'name', 'module')}: {text.splitlines()[0]}")
    assert unclear == []


def test_contributors_find_every_slow_test() -> None:
    page = (_REPOSITORY / "CONTRIBUTING.md").read_text()
    slow = [
        _name(path)
        for path in sorted((_REPOSITORY / "tests").rglob("test_*.py"))
        if "pytest.mark." + "slow" in path.read_text()
    ]
    assert [name for name in slow if f"`{name}`" not in page] == []
