"""Tasks find the modules that the driver found."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.protocol.program import JobProgram, PackedProgram
from firesteel.usercode import pickling
from firesteel.usercode.loading import UnloadableFunctionError
from firesteel.usercode.search_path import SearchPath

LIBRARY = sysconfig.get_path("stdlib")
PACKAGES = sysconfig.get_path("purelib")


def _adopted(driver: list[str], task: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(sys, "path", driver)
    search_path = SearchPath.of_driver()
    monkeypatch.setattr(sys, "path", task)
    search_path.adopt()
    return sys.path


def test_what_the_driver_finds_before_the_standard_library_a_task_does_too(monkeypatch):
    driver = ["/app", "/app/deps.zip", LIBRARY, PACKAGES, "/appended"]
    task = ["/spark", "/app/deps.zip", LIBRARY, "/own-packages"]
    assert _adopted(driver, task, monkeypatch) == [
        *("/app", "/app/deps.zip", "/spark"),
        LIBRARY,
        *("/own-packages", PACKAGES, "/appended"),
    ]


def test_the_working_directory_counts_only_where_it_does_for_the_driver(monkeypatch):
    here = os.getcwd()
    assert _adopted(["", LIBRARY], ["/spark", LIBRARY], monkeypatch) == [here, "/spark", LIBRARY]
    assert _adopted(["/app", LIBRARY], [here, LIBRARY], monkeypatch) == ["/app", LIBRARY, here]


def test_of_two_programs_in_one_process_the_later_goes_first_and_both_find_theirs(monkeypatch):
    once = _adopted(["/a", LIBRARY], ["/spark", LIBRARY], monkeypatch)
    assert _adopted(["/b", LIBRARY], once, monkeypatch) == ["/b", "/a", "/spark", LIBRARY]


def test_the_drivers_own_process_keeps_its_path(monkeypatch):
    path = ["", "/a", LIBRARY, PACKAGES]
    monkeypatch.setattr(sys, "path", path)
    SearchPath.of_driver().adopt()
    assert path == ["", "/a", LIBRARY, PACKAGES]


@pytest.fixture
def _leave_no_module(monkeypatch):
    """Forget the modules that a test imported under these names."""
    names = ("trace", "utils_of_a_user", "only_in_the_driver")
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(before)


def _import(name: str, directory: Path, text: str) -> ModuleType:
    directory.mkdir()
    (directory / f"{name}.py").write_text(text)
    sys.path.insert(0, str(directory))
    importlib.invalidate_caches()
    return importlib.import_module(name)


def _pack(function: Any) -> PackedProgram:
    env = StreamExecutionEnvironment().set_parallelism(1)
    env.from_sequence(1, 3).map(function).name("double").print()
    return PackedProgram.pack(JobProgram("id", "doubling", 0, env._compile("job").levels))


_UNPACK = """
import sys
{before}
from firesteel.usercode import pickling
with open(sys.argv[1], "rb") as file:
    program = pickling.loads(file.read()).unpack()
(function,) = [n.spec.function for n in program.levels.job_graph.nodes.values() if n.name == "double"]
print(function(4))
"""


def _unpack_elsewhere(packed: PackedProgram, tmp_path: Path, before: str = "") -> str:
    (tmp_path / "program").write_bytes(pickling.dumps(packed))
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", _UNPACK.format(before=before), str(tmp_path / "program")],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        check=False,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.mark.usefixtures("_leave_no_module")
def test_a_module_beside_the_script_wins_over_one_of_the_standard_library(tmp_path):
    trace = _import("trace", tmp_path / "app", "def double(x): return 2 * x")
    packed = _pack(trace.double)
    assert _unpack_elsewhere(packed, tmp_path) == "8\n"
    # Unless it is too late for that: then the user learns which file is in the way.
    text = _unpack_elsewhere(packed, tmp_path, before="import trace")
    assert "Job 'doubling' failed: a task could not load operator 'double'" in text
    assert "the function double" in text
    assert str(tmp_path / "app" / "trace.py") in text
    assert f"{LIBRARY}/trace.py" in text


@pytest.mark.usefixtures("_leave_no_module")
def test_another_module_of_the_same_name_does_not_run_even_if_it_has_the_function(tmp_path):
    ours = _import("utils_of_a_user", tmp_path / "app", "def double(x): return 2 * x")
    packed = _pack(ours.double)
    theirs = tmp_path / "theirs" / "utils_of_a_user.py"
    del sys.modules["utils_of_a_user"]
    _import("utils_of_a_user", theirs.parent, "def double(x): return 'wrong'")
    with pytest.raises(UnloadableFunctionError, match="utils_of_a_user") as caught:
        packed.unpack()
    assert str(theirs) in str(caught.value)
    # A copy is as good, and on a machine that does not have the driver's file it is all there is.
    theirs.write_text("def double(x): return 2 * x")
    packed.unpack()
    theirs.write_text("def double(x): return 'another version'")
    (tmp_path / "app" / "utils_of_a_user.py").unlink()
    packed.unpack()


@pytest.mark.usefixtures("_leave_no_module")
def test_a_missing_module_is_told_with_how_to_bring_it_along(tmp_path):
    module = _import("only_in_the_driver", tmp_path / "app", "def double(x): return 2 * x")
    packed = _pack(module.double)
    (tmp_path / "app" / "only_in_the_driver.py").unlink()
    text = _unpack_elsewhere(packed, tmp_path)
    assert "a task could not load operator 'double'" in text
    assert "The tasks do not have the module 'only_in_the_driver'" in text
    assert "add_python_file" in text
