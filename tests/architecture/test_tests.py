"""The tests mirror the tree: a reader finds the tests of a module by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.imports import PACKAGE, REPOSITORY

TESTS = REPOSITORY / "tests"

# Suites about more than one room, or about what a file name cannot say.
SUITES = {
    "architecture": "rules about the code itself",
    "benchmarks": "the tools that measure",
    "compat": "names, signatures and file formats of PyFlink and of earlier versions",
    "docs": "the manual",
    "examples": "the example programs",
    "integration": "whole jobs on Spark",
    "properties": "random programs against plain models",
    "recovery": "whole jobs with faults on the harness",
    "servers": "servers and a browser as processes",
    "state/backends": "one suite for all state backends",
}

# Parts that operators share, and no operators.
NO_OPERATORS = {"batch_function", "__init__", "base", "late_records"}


def _mirroring_tests() -> list[Path]:
    found = [path.relative_to(TESTS) for path in sorted(TESTS.rglob("test_*.py"))]
    return [path for path in found if not any(path.is_relative_to(suite) for suite in SUITES)]


@pytest.mark.parametrize("test", _mirroring_tests(), ids=str)
def test_a_test_is_named_after_a_module_of_the_same_folder(test: Path) -> None:
    package = PACKAGE / test.parent
    assert (package / "__init__.py").is_file(), f"there is no package firesteel/{test.parent}"
    modules = {path.stem for path in package.glob("*.py")} | {package.name}
    about = test.stem.removeprefix("test_")
    assert any(about == module or about.startswith(f"{module}_") for module in modules), (
        f"begin the name with test_<module>, a module of firesteel/{test.parent}, or with "
        f"test_{package.name} if it is about all of them"
    )


@pytest.mark.parametrize(
    "operator",
    sorted({path.stem for path in (PACKAGE / "task/operators").glob("*.py")} - NO_OPERATORS),
)
def test_every_operator_has_a_test_of_its_name(operator: str) -> None:
    assert (TESTS / f"task/operators/test_{operator}.py").is_file()


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_exists(suite: str) -> None:
    assert any((TESTS / suite).glob("*.py"))
