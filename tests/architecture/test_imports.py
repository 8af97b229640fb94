"""Imports go one way (docs/architecture.md shows the rooms)."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.imports import PACKAGE, Import, When, all_imports, module_files, module_name

_RUNTIME = {"checkpoint", "cli", "master", "spark", "state_processor", "task", "testing"}

# Which rooms a room must not need in order to be loaded. Imports inside functions are allowed here.
_NOT_NEEDED = {
    "errors": {"common", "config", "datastream", "gaps", "graph", "metrics", "state", *_RUNTIME},
    "gaps": {"common", "config", "datastream", "graph", "metrics", "state", *_RUNTIME},
    "metrics": {"datastream", "graph", "state", *_RUNTIME},
    "common": {"datastream", "graph", "metrics", "state", *_RUNTIME},
    "config": {"datastream", "graph", "metrics", "state", *_RUNTIME},
    "graph": {"datastream", "state", *_RUNTIME},
    "datastream": {"state", *_RUNTIME},
    "state": {"graph", *_RUNTIME},
    "checkpoint": {"cli", "master", "spark", "state_processor", "task", "testing"},
    "master": {"cli", "spark", "state_processor", "testing"},
    "state_processor": {"cli", "master", "spark", "task", "testing"},
}

# Which rooms a room must not know at all.
_UNKNOWN = {
    "checkpoint": {"cli", "master", "spark", "state_processor", "task", "testing"},
    "task": {"cli", "master", "spark", "state_processor", "testing"},
    "state": {"checkpoint", "cli", "master", "spark", "state_processor", "task"},
    "metrics": {"master", "spark", "task"},
    "spark": {"state_processor", "testing"},
}


def _places(imports: list[Import]) -> list[str]:
    return [f"{found.place} imports {found.imported}" for found in imports]


@pytest.mark.parametrize("library", ["pyspark", "py4j"])
def test_only_one_room_talks_to_spark(library: str) -> None:
    wrong = [i for i in all_imports() if i.to_room == library and i.from_room != "spark"]
    assert _places(wrong) == []


@pytest.mark.parametrize("library", ["pandas", "numpy", "pyflink"])
def test_some_libraries_are_not_for_us(library: str) -> None:
    assert _places([i for i in all_imports() if i.to_room == library]) == []


@pytest.mark.parametrize("room", sorted(_NOT_NEEDED))
def test_a_room_loads_without_those_above_it(room: str) -> None:
    wrong = [
        i
        for i in all_imports()
        if i.from_room == room and i.when is When.LOADING and i.to_room in _NOT_NEEDED[room]
    ]
    assert _places(wrong) == []


@pytest.mark.parametrize("room", sorted(_UNKNOWN))
def test_a_room_does_not_know_those_above_it(room: str) -> None:
    wrong = [
        i
        for i in all_imports()
        if i.from_room == room and i.when is not When.NEVER and i.to_room in _UNKNOWN[room]
    ]
    assert _places(wrong) == []


def test_no_module_needs_itself() -> None:
    modules = {module_name(path) for path in module_files()}
    needs: dict[str, set[str]] = {module: set() for module in modules}
    for found in all_imports():
        target = _module_of(found.imported, modules)
        if found.when is When.LOADING and target not in {None, found.importer}:
            needs[found.importer].add(target)
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def _module_of(imported: str, modules: set[str]) -> str | None:
    """The module that ``from a.b import c`` loads: a.b.c if that is one, else a.b."""
    if imported in modules:
        return imported
    parent = imported.rpartition(".")[0]
    return parent if parent in modules else None


def test_the_rooms_named_here_exist() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir()}
    named = set(_NOT_NEEDED) | set(_UNKNOWN) | set().union(*_NOT_NEEDED.values())
    assert named <= rooms
