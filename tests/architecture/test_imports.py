"""One table says which room may import which (docs/architecture.md shows the rooms)."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.imports import Import, When, all_imports, module_files, module_name

# A room is a package below firesteel, a package within one, or a single module. A module belongs to
# the longest room that its name begins with. A room may import itself and the rooms listed here,
# at any time, also inside functions. "datastream" stands for the modules directly in it.
# Every room may import the ground.
_GROUND = {"errors", "stability"}
_API = {
    "datastream",
    "datastream.functions",
    "datastream.state",
    "datastream.window",
}
_STATE = {"state", "state.hashmap", "state.rocksdb"}
_CHECKPOINT = {"checkpoint", "checkpoint.rules", "checkpoint.storage", "checkpoint.savepoints"}
_TASK = {
    "task",
    "task.async_io",
    "task.codegen",
    "task.exchange",
    "task.operators",
    "task.state",
    "task.time",
    "task.windowing",
}

ALLOWED: dict[str, set[str]] = {
    # The ground
    "version": set(),
    "dashboard": set(),
    "logs": set(),
    "processes": set(),
    "sampling": set(),
    "errors": set(),
    "stability": set(),
    "gaps": set(),
    "metrics": set(),
    "usercode": set(),
    "config": set(),
    "common": {"config", "gaps"},
    "config.loader": {"common", "config"},
    "filesystems": {"common", "config"},
    "table": {"common"},
    "formats": {"common", "table"},
    "connectors": {"common", "filesystems", "formats", "usercode"},
    # A program and its translation
    "graph": {"common"},
    "datastream": {
        "common",
        "config",
        "datastream.data_stream",
        "datastream.functions",
        "datastream.stream_execution_environment",
        "datastream.window",
        "gaps",
        "graph",
    },
    "datastream.connectors": {"connectors", "formats", "gaps"},
    "datastream.formats": {"connectors", "formats"},
    "datastream.data_stream": {"common", "connectors", "filesystems", "gaps", "graph", *_API},
    "datastream.functions": {
        "common",
        "datastream",
        "datastream.state",
        "gaps",
        "metrics",
    },
    "datastream.state": {"common", "datastream.functions"},
    "datastream.stream_execution_environment": {
        "common",
        "config",
        "config.loader",
        "connectors",
        "datastream",
        "datastream.data_stream",
        "graph",
    },
    "datastream.window": {"common", "datastream.state"},
    # State and checkpoints
    "state": {"common", "config", "state.hashmap", "state.rocksdb", "usercode"},
    "state.hashmap": {"common", "state"},
    "state.rocksdb": {"common", "filesystems", "state", "usercode"},
    "checkpoint": {"common", "connectors", "state", "usercode"},
    "checkpoint.rules": {
        "checkpoint",
        "common",
        "config",
        "datastream",
        "graph",
        "state",
    },
    "checkpoint.storage": {
        "checkpoint",
        "checkpoint.rules",
        "common",
        "datastream",
        "filesystems",
        "state",
    },
    "checkpoint.savepoints": {
        "checkpoint",
        "checkpoint.rules",
        "checkpoint.storage",
        "common",
        "filesystems",
        "graph",
        "state",
        "usercode",
    },
    "checkpoint.snapshot_writer": {"filesystems", *_CHECKPOINT},
    # Several masters, one leader
    "leader": {"checkpoint.storage", "common", "config", "filesystems", "version"},
    # What driver and slots say to each other
    "protocol": {
        "checkpoint",
        "checkpoint.rules",
        "checkpoint.storage",
        "common",
        "connectors",
        "filesystems",
        "graph",
        "leader",
        "state",
        "usercode",
    },
    # In a slot
    "task": {
        "checkpoint",
        "checkpoint.rules",
        "common",
        "filesystems",
        "graph",
        "leader",
        "metrics",
        "protocol",
        "usercode",
        *_API,
        *_STATE,
        *_TASK,
    },
    "task.async_io": {"datastream.functions"},
    "task.codegen": {"state", "task", "usercode"},
    "task.exchange": {
        "common",
        "graph",
        "protocol",
        "state",
        "task",
        "task.codegen",
        "task.time",
        "usercode",
    },
    "task.operators": {
        "common",
        "connectors",
        "filesystems",
        "graph",
        "metrics",
        "protocol",
        "state",
        "state.hashmap",
        "usercode",
        "task",
        "task.async_io",
        "task.codegen",
        "task.exchange",
        "task.state",
        "task.time",
        *_API,
    },
    "task.state": {
        "checkpoint",
        "checkpoint.rules",
        "checkpoint.savepoints",
        "checkpoint.storage",
        "common",
        "datastream.functions",
        "datastream.state",
        "filesystems",
        "protocol",
        "state",
        "task",
        "task.time",
    },
    "task.time": {"common", "datastream", "state", "task", "usercode"},
    "task.windowing": {
        "common",
        "graph",
        "metrics",
        "state",
        "task",
        "task.operators",
        "task.state",
        "task.time",
        "usercode",
        *_API,
    },
    "slothost": {"processes", "protocol", "task", "usercode"},
    # In the driver
    "master": {
        "checkpoint.snapshot_writer",
        "common",
        "config",
        "connectors",
        # The modes of execution and of checkpoints.
        "datastream",
        "filesystems",
        "graph",
        "leader",
        "metrics",
        "protocol",
        "state",
        # To commit in the driver.
        "task",
        "task.operators",
        "usercode",
        *_CHECKPOINT,
    },
    "spark": {
        "checkpoint",
        "checkpoint.savepoints",
        "common",
        "config",
        "datastream.stream_execution_environment",
        "filesystems",
        "graph",
        "logs",
        "master",
        "processes",
        "protocol",
        "sampling",
        "slothost",
        "task",
        "task.operators",
        "usercode",
    },
    # The jobs of a driver
    "dispatcher": {
        "checkpoint.rules",
        "checkpoint.savepoints",
        "checkpoint.storage",
        "common",
        "config",
        "config.loader",
        # The mode of execution.
        "datastream",
        # The job that warms Spark up.
        "datastream.stream_execution_environment",
        "filesystems",
        "graph",
        "logs",
        "leader",
        "master",
        "protocol",
        "spark",
        "usercode",
        "version",
    },
    # The way to a dispatcher in a different process
    "client": {
        "common",
        "config",
        "filesystems",
        "graph",
        "leader",
        "master",
        "processes",
        "protocol",
        "usercode",
        "version",
    },
    "rest": {
        "common",
        "config",
        "dispatcher",
        "logs",
        "master",
        "processes",
        "protocol",
        "sampling",
        "version",
    },
    # Tools
    "state_processor": {
        "common",
        "datastream",
        "datastream.state",
        "filesystems",
        "graph",
        "state",
        *_CHECKPOINT,
    },
    "testing": {
        "common",
        "config",
        "connectors",
        "datastream.data_stream",
        "datastream.stream_execution_environment",
        "filesystems",
        "graph",
        "master",
        "protocol",
        "state",
        "usercode",
        *_API,
        *_CHECKPOINT,
        *_TASK,
    },
    "cli": {
        "checkpoint.savepoints",
        "client",
        "common",
        "config",
        "config.loader",
        "datastream.stream_execution_environment",
        "dispatcher",
        "filesystems",
        "graph",
        "leader",
        "logs",
        "master",
        "processes",
        "rest",
        "spark",
        "version",
    },
    "__main__": {"cli"},
    "": {"gaps", "version"},
}

# Calls to a room above. They import it inside a function, when the user asks for its service.
CALLS_UPWARD = {
    ("datastream.stream_execution_environment", "client"): "execute() sends a job to a session",
    ("datastream.stream_execution_environment", "rest"): "REST for the jobs of a program",
    ("datastream.stream_execution_environment", "master"): "execute() starts a job",
    ("datastream.stream_execution_environment", "spark"): "the session for DataFrames",
    ("master", "spark"): "a job gets the executor that runs it",
    ("state_processor", "spark"): "state as a DataFrame",
}

# Annotations that name a class of a room above. Type checkers alone read these imports.
TYPES_ABOVE = {
    ("datastream.data_stream", "datastream.stream_execution_environment"),
    ("datastream.window", "datastream.functions"),
    ("datastream.window", "metrics"),
    ("graph", "datastream"),
}

MODULES = frozenset(module_name(path) for path in module_files())


def room(module: str) -> str:
    """The longest room in the table that a module's name begins with."""
    name = module.removeprefix("firesteel").removeprefix(".")
    while name and name not in ALLOWED:
        name = name.rpartition(".")[0]
    return name


def target(imported: str) -> str | None:
    """The module that ``from a.b import c`` loads: a.b.c if that is one, else a.b."""
    parent = imported.rpartition(".")[0]
    return next((name for name in (imported, parent) if name in MODULES), None)


def crossings() -> list[tuple[Import, str, str]]:
    """The imports from one room into a different one."""
    found = []
    for one in all_imports():
        module = target(one.imported)
        if module is not None and room(one.importer) != room(module):
            found.append((one, room(one.importer), room(module)))
    return found


def is_allowed(found: Import, importer: str, imported: str) -> bool:
    if imported in ALLOWED[importer] or imported in _GROUND:
        return True
    if found.when is When.CALLING:
        return (importer, imported) in CALLS_UPWARD
    return found.when is When.NEVER and (importer, imported) in TYPES_ABOVE


def places(imports: list[Import]) -> list[str]:
    return [f"{found.place} imports {found.imported} {found.when.value}" for found in imports]


def test_a_room_imports_only_the_rooms_in_its_line() -> None:
    wrong = [found for found, *rooms in crossings() if not is_allowed(found, *rooms)]
    assert places(wrong) == []


def test_every_exception_is_needed() -> None:
    used = {(importer, imported) for _, importer, imported in crossings()}
    assert (set(CALLS_UPWARD) | TYPES_ABOVE) - used == set()


def test_every_module_stands_in_a_room() -> None:
    assert [
        module for module in sorted(MODULES) if not room(module) and module != "firesteel"
    ] == []
    gone = [name for name in ALLOWED if name and f"firesteel.{name}" not in MODULES]
    assert gone == []


def test_the_table_goes_one_way() -> None:
    """Between top-level rooms. The reader of configuration files stands above ``common``."""
    needs: dict[str, set[str]] = {}
    for importer, rooms in ALLOWED.items():
        above = _top(importer)
        needs.setdefault(above, set()).update({_top(name) for name in rooms} - {above})
    _fail_on_a_cycle(needs)


@pytest.mark.parametrize("house", ["checkpoint", "task"])
def test_the_rooms_within_a_room_go_one_way(house: str) -> None:
    """The modules directly in it stand both below its rooms (types) and above them (wiring)."""
    within = {name for name in ALLOWED if name.startswith(f"{house}.")}
    _fail_on_a_cycle({name: (ALLOWED[name] & within) - {name} for name in within})


def _fail_on_a_cycle(needs: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def _top(name: str) -> str:
    return name if name == "config.loader" else name.partition(".")[0]


def test_no_module_needs_itself() -> None:
    needs: dict[str, set[str]] = {module: set() for module in MODULES}
    for found in all_imports():
        module = target(found.imported)
        if found.when is When.LOADING and module is not None and module != found.importer:
            needs[found.importer].add(module)
    _fail_on_a_cycle(needs)


@pytest.mark.parametrize("library", ["pyspark", "py4j"])
def test_only_one_room_talks_to_spark(library: str) -> None:
    wrong = [i for i in all_imports() if i.to_room == library and i.from_room != "spark"]
    assert places(wrong) == []


@pytest.mark.parametrize("library", ["pandas", "pyflink"])
def test_some_libraries_are_not_for_us(library: str) -> None:
    assert places([i for i in all_imports() if i.to_room == library]) == []
