"""What modules look like."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.imports import REPOSITORY, is_type_checking, module_files

_MOST_LINES = 500


def _name(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


@pytest.mark.parametrize("path", module_files(), ids=_name)
def test_a_module_is_short_and_says_what_it_is(path: Path) -> None:
    text = path.read_text()
    lines = text.count("\n")
    assert lines <= _MOST_LINES, f"{lines} lines; split it along its concepts"
    assert ast.get_docstring(ast.parse(text)), "say in the first line which room this is"


@pytest.mark.parametrize(
    "path", [path for path in module_files() if path.name == "__init__.py"], ids=_name
)
def test_an_init_only_passes_names_on(path: Path) -> None:
    code = [
        f"line {statement.lineno}: {ast.unparse(statement).splitlines()[0]}"
        for statement in ast.parse(path.read_text()).body
        if not _passes_names_on(statement)
    ]
    assert code == []


def _passes_names_on(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assign):
        return ast.unparse(statement.targets[0]) == "__all__"
    return isinstance(statement, ast.If) and _is_gap_hook(statement)


def _is_gap_hook(statement: ast.If) -> bool:
    """``if not TYPE_CHECKING: __getattr__ = gap_importer(__name__)``, or imports for types."""
    if is_type_checking(statement.test):
        return all(_passes_names_on(inner) for inner in statement.body)
    return (
        ast.unparse(statement.test) == "not TYPE_CHECKING"
        and [ast.unparse(inner) for inner in statement.body]
        == ["__getattr__ = gap_importer(__name__)"]
        and not statement.orelse
    )
