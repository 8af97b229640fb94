"""RocksDB only: files on disk, shared between snapshots, and state larger than memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firesteel.errors import ConfigurationError
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.backend_factory import StateBackendSettings, create_keyed_state
from firesteel.state.changelog import Segment
from tests.state.backends.subtask_state import SubtaskState


def _create(directory: Path, **settings: object) -> KeyedStateBackend:
    return create_keyed_state(
        StateBackendSettings("rocksdb", (str(directory),), **settings),  # type: ignore[arg-type]
        None,
        128,
    )


def _fill(state: SubtaskState, keys: range, value: str) -> None:
    table = state.backend.value_table("t")
    for key in keys:
        table.put(key, f"{value} {key}")


def _full_of(state: SubtaskState) -> list[Segment]:
    """The full segments that an epoch hands over after the background snapshot."""
    state.wait_for_snapshot()
    return [segment for segment in state.end_epoch() if segment.full]


def test_a_full_snapshot_writes_only_the_files_that_are_new(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    state = SubtaskState(lambda: _create(tmp_path / "local"), tmp_path / "store")
    _fill(state, range(100_000), "old")
    state.end_epoch()
    (first,) = _full_of(state)
    assert first.own_size() == first.size > 500_000
    # Changes are a log until the log has grown to twice the state.
    while not (later := _full_of(state)):
        _fill(state, range(1_000), "new")
        state.end_epoch()
    (second,) = later
    assert second.own_size() < 0.15 * second.size
    state.crash()
    assert state.backend.value_table("t").get(5) == "new 5"
    assert state.backend.value_table("t").get(99_999) == "old 99999"
    state.backend.close()


def test_without_incremental_snapshots_all_files_are_written(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    create = lambda: _create(tmp_path / "local", incremental=False)  # noqa: E731
    state = SubtaskState(create, tmp_path / "store")
    found: list[Segment] = []
    while len(found) < 2:
        _fill(state, range(1_000), "x")
        state.end_epoch()
        found += _full_of(state)
    assert all(full.own_size() == full.size for full in found)
    state.backend.close()


def test_closing_leaves_nothing_behind(tmp_path: Path) -> None:
    local = tmp_path / "local"
    state = SubtaskState(lambda: _create(local), None)
    _fill(state, range(1_000), "x")
    state.end_epoch()
    assert len(list(local.iterdir())) == 1
    state.backend.close()
    state.backend.close()
    assert list(local.iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from tests.state.rocksdb.test_backend import _create\n"
        "from pathlib import Path\n"
        "kept = _create(Path(sys.argv[1]))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    (orphan,) = tmp_path.iterdir()
    alive = _create(tmp_path)
    other = _create(tmp_path)
    assert orphan not in set(tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == 2
    alive.close()
    other.close()


def test_a_live_database_of_a_different_container_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process has an id that means nothing here."""

    def no_such_process(pid: int, number: int) -> None:
        raise ProcessLookupError

    alive = _create(tmp_path)
    monkeypatch.setattr(os, "kill", no_such_process)
    (directory,) = tmp_path.iterdir()
    other = _create(tmp_path)
    assert (directory / "db").exists()
    alive.close()
    other.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "DEFAULT",
        "SPINNING_DISK_OPTIMIZED",
        "SPINNING_DISK_OPTIMIZED_HIGH_MEM",
        "FLASH_SSD_OPTIMIZED",
    ],
)
def test_every_set_of_options_works(tmp_path: Path, name: str) -> None:
    state = SubtaskState(lambda: _create(tmp_path, predefined_options=name))
    _fill(state, range(100), "x")
    state.end_epoch()
    assert state.backend.value_table("t").get(7) == "x 7"
    state.backend.close()


def test_without_rocksdict_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'firesteel\[rocksdb\]'"):
        create_keyed_state(StateBackendSettings("rocksdb"), None, 128)


_MANY_KEYS = """
import resource, sys
from pathlib import Path
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
from tests.state.rocksdb.test_backend import _create
from tests.state.backends.subtask_state import SubtaskState
from firesteel.state.tables import MISSING
keys = int(sys.argv[1])
directory = Path(sys.argv[3])
(directory / "store").mkdir()
state = SubtaskState(lambda: _create(directory / "local"), directory / "store", 1 << 16)
table = state.backend.value_table("t")
epoch = 100_000
for start in range(0, keys, epoch):
    get, overlay = table.base.get, table.overlay
    for key in range(start, start + epoch):
        known = get(key, MISSING)
        overlay[key] = (0 if known is MISSING else known) + key
    state.end_epoch()
state.wait_for_snapshot()
state.end_epoch()
assert table.get(keys - 1) == keys - 1
state.crash()
table = state.backend.value_table("t")
assert table.get(0) == 0 and table.get(keys // 2) == keys // 2 and table.get(keys) is MISSING
state.backend.close()
# Not ru_maxrss: a child inherits the maximum of the process that forked it.
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print("ok", peak.split()[1])
"""


def _run_with_many_keys(keys: int, limit: int, directory: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _MANY_KEYS, str(keys), str(limit), str(directory)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("ok"), done.stderr
    return int(done.stdout.split()[1]) * 1024


def test_state_may_be_larger_than_memory(tmp_path: Path) -> None:
    # As Python objects 300,000 keys would fit; the point is that memory does not grow with them.
    used = _run_with_many_keys(300_000, 700 << 20, tmp_path)
    assert used < 600 << 20


@pytest.mark.slow
def test_ten_million_keys_fit_into_a_gigabyte(tmp_path: Path) -> None:
    assert _run_with_many_keys(10_000_000, 1 << 30, tmp_path) < 1 << 30
