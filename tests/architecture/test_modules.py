"""Rules that every module follows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.imports import REPOSITORY, is_type_checking, module_files


def _name(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


@pytest.mark.parametrize("path", module_files(), ids=_name)
def test_a_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), "begin with a docstring"


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
        is_hook = ast.unparse(statement) == "install_finder()"
        return isinstance(statement.value, ast.Constant) or is_hook
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
