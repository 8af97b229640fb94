"""ScriptedSource and ListSink of firesteel.testing do on Spark what they do in a harness."""

from __future__ import annotations

import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import FiresteelError
from firesteel.testing import Crash, KillProcess, ListSink, Pause, ScriptedSource


def test_a_killed_process_and_a_pause_leave_each_record_in_the_sink_once(
    env: StreamExecutionEnvironment,
) -> None:
    source = ScriptedSource(["a", Pause(), "b", KillProcess(), "c", Pause(0.1), "d"])
    sink = ListSink()
    letters = env.from_source(source, None, "script")
    letters.map(str.upper).sink_to(sink)
    env.execute("scripted")
    assert sorted(sink.values()) == ["A", "B", "C", "D"]


def test_a_crash_ends_the_job_and_only_what_was_committed_before_counts(
    env: StreamExecutionEnvironment,
) -> None:
    # In the first pause an epoch ends, and the next one commits what it has prepared.
    source = ScriptedSource([1, 2, Pause(4.0), 3, Pause(), Crash("as scripted"), 4])
    sink = ListSink()
    env.from_source(source, None, "script").sink_to(sink)
    with pytest.raises(FiresteelError, match="as scripted"):
        env.execute("crashes")
    # The epoch before the crash may be prepared and not yet committed.
    assert set(sink.values()) <= {1, 2, 3}
    assert {1, 2} <= set(sink.values())
