"""Reads the imports of every module without importing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "firesteel"


class When(Enum):
    """The time at which an import runs."""

    LOADING = "when the module is loaded"
    CALLING = "inside a function"
    NEVER = "for type checkers only"


@dataclass(frozen=True, slots=True)
class Import:
    importer: str
    imported: str
    when: When
    place: str

    @property
    def from_room(self) -> str:
        return room(self.importer)

    @property
    def to_room(self) -> str:
        return room(self.imported)


def room(module: str) -> str:
    """Return the first folder or file below the package, or the library's name."""
    parts = module.split(".")
    return parts[1] if parts[0] == "firesteel" and len(parts) > 1 else parts[0]


def module_name(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def module_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@cache
def all_imports() -> tuple[Import, ...]:
    return tuple(found for path in module_files() for found in imports_of(path))


def imports_of(path: Path) -> Iterator[Import]:
    place = str(path.relative_to(REPOSITORY))
    yield from imports_in(path.read_text(), module_name(path), place)


def imports_in(source: str, module: str, place: str) -> Iterator[Import]:
    yield from _walk(ast.parse(source), module, place, When.LOADING)


def _walk(node: ast.AST, module: str, file: str, when: When) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        place = f"{file}:{getattr(child, 'lineno', 0)}"
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(module, alias.name, when, place)
        elif isinstance(child, ast.ImportFrom):
            for alias in child.names:
                yield Import(module, f"{child.module}.{alias.name}", when, place)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _walk(child, module, file, When.CALLING)
        elif isinstance(child, ast.If) and is_type_checking(child.test):
            for statement in child.body:
                yield from _walk(ast.Module([statement], []), module, file, When.NEVER)
            for statement in child.orelse:
                yield from _walk(ast.Module([statement], []), module, file, when)
        else:
            yield from _walk(child, module, file, when)


def is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
