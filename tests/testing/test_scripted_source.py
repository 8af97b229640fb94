import subprocess
import sys

import cloudpickle
import pytest

from firesteel.datastream.connectors.base import Boundedness, ReaderContext
from firesteel.testing import Crash, KillProcess, Pause, ScriptedCrashError, ScriptedSource, Timed


def _reader(source, splits=None):
    reader = source.create_reader(ReaderContext(0, 1))
    reader.add_splits(splits or source.create_enumerator(1).discover_splits())
    return reader


def test_records_in_order_up_to_the_limit_and_the_next_mark():
    reader = _reader(ScriptedSource([1, 2, 3, Pause(), 4]))
    assert reader.read(2) == [1, 2]
    assert reader.read(9) == [3]
    assert reader.read(9) == []
    assert reader.read(9) == [4]
    assert reader.snapshot_splits() == []


def test_positions_are_indexes_into_the_script():
    source = ScriptedSource(["a", Pause(), "b", "c"])
    reader = _reader(source)
    reader.read(9)
    reader.read(9)
    (split,) = reader.snapshot_splits()
    assert split.position == 2
    assert _reader(source, [split]).read(9) == ["b", "c"]


def test_a_pause_says_how_long():
    reader = _reader(ScriptedSource([Pause(0.25), 1]))
    assert reader.read(9) == []
    assert reader.next_read_delay() == 0.25


def test_a_crash_happens_once_whoever_reads():
    source = ScriptedSource([1, Crash("boom"), 2])
    shipped = cloudpickle.loads(cloudpickle.dumps(source))
    reader = _reader(shipped)
    assert reader.read(9) == [1]
    with pytest.raises(ScriptedCrashError, match="boom"):
        reader.read(9)
    again = _reader(source)
    assert [again.read(9), again.read(9)] == [[1], [2]]
    source.reset()
    with pytest.raises(ScriptedCrashError):
        _reader(ScriptedSource([Crash()], directory=source._directory)).read(9)


def test_kill_process_kills_once(tmp_path):
    program = f"""
from firesteel.datastream.connectors.base import ReaderContext
from firesteel.testing import KillProcess, ScriptedSource
source = ScriptedSource([1, KillProcess(), 2], directory={str(tmp_path)!r})
reader = source.create_reader(ReaderContext(0, 1))
reader.add_splits(source.create_enumerator(1).discover_splits())
print(reader.read(9), flush=True)
print(reader.read(9), flush=True)
"""

    def run():
        return subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONPATH": ":".join(entry for entry in sys.path if entry)},
            capture_output=True,
            text=True,
            check=False,
        )

    first, second = run(), run()
    assert (first.returncode, first.stdout) == (-9, "[1]\n")
    assert (second.returncode, second.stdout) == (0, "[1]\n[2]\n")


def test_timed_records():
    reader = _reader(ScriptedSource([Timed("a", 1), Timed("b", 2)]))
    assert reader.read(9) == ["a", "b"]
    assert reader.timestamps() == [1, 2]
    with pytest.raises(ValueError, match="all records"):
        ScriptedSource([Timed("a", 1), "b"])


def test_an_unbounded_script_never_ends():
    source = ScriptedSource([1], bounded=False)
    assert source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    reader = _reader(source)
    reader.read(9)
    assert reader.read(9) == []
    assert [split.position for split in reader.snapshot_splits()] == [1]


def test_the_directory_goes_with_the_source():
    import pathlib

    source = ScriptedSource([])
    directory = pathlib.Path(source._directory)
    copy = cloudpickle.loads(cloudpickle.dumps(source))
    del copy
    assert directory.exists()
    del source
    assert not directory.exists()


def test_records_are_the_script_without_its_marks():
    assert ScriptedSource([1, Pause(), KillProcess(), Crash(), 2]).records() == [1, 2]
