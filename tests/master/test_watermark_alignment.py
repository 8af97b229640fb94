"""Sources of a group wait for each other."""

from __future__ import annotations

from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.common.time import Duration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.master.watermark_alignment import WatermarkAligner
from firesteel.protocol.messages import SourceStatus
from firesteel.testing import JobHarness, ScriptedSource, Timed


def _strategy(drift: int, group: str = "g") -> WatermarkStrategy:
    return WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        group, Duration.of_millis(drift), Duration.of_millis(500)
    )


def _aligner(*strategies: WatermarkStrategy) -> WatermarkAligner:
    env = StreamExecutionEnvironment().set_parallelism(1)
    for number, strategy in enumerate(strategies):
        env.from_source(NumberSequenceSource(0, 1), strategy, f"s{number}").map(str)
    return WatermarkAligner(env._compile("job").stream_graph.nodes)


def _status(watermark: int = 0, *, idle: bool = False, finished: bool = False) -> SourceStatus:
    return SourceStatus((), True, 0.0, finished, watermark, idle)


def test_a_source_may_be_ahead_of_the_slowest_by_the_drift():
    aligner = _aligner(_strategy(100), _strategy(100))
    assert aligner.limits(0.0) == {1: MIN_WATERMARK + 100, 3: MIN_WATERMARK + 100}
    aligner.update(1, 0, _status(5_000))
    aligner.update(3, 0, _status(4_000))
    assert aligner.limits(1.0) == {1: 4_100, 3: 4_100}


def test_limits_change_at_the_update_interval():
    aligner = _aligner(_strategy(100))
    aligner.limits(0.0)
    aligner.update(1, 0, _status(5_000))
    assert aligner.limits(0.4) == {1: MIN_WATERMARK + 100}
    assert aligner.delay(1, 0.4) < 0.11
    assert aligner.limits(0.5) == {1: 5_100}


def test_idle_and_ended_sources_hold_nobody_up():
    aligner = _aligner(_strategy(100), _strategy(100), _strategy(100))
    aligner.update(1, 0, _status(5_000))
    aligner.update(3, 0, _status(10, idle=True))
    aligner.update(5, 0, _status(20, finished=True))
    assert aligner.limits(0.0)[1] == 5_100
    aligner.update(1, 0, _status(5_000, finished=True))
    assert aligner.limits(1.0)[1] == MAX_WATERMARK


def test_groups_know_nothing_of_each_other_nor_of_other_sources():
    aligner = _aligner(_strategy(100), _strategy(100, "h"), WatermarkStrategy.no_watermarks())
    aligner.update(1, 0, _status(5_000))
    aligner.update(3, 0, _status(70))
    aligner.update(5, 0, _status(1))
    assert aligner.limits(0.0) == {1: 5_100, 3: 170}


def test_in_a_job_the_faster_source_stays_within_the_drift():
    def program(env):
        slow = ScriptedSource([Timed(("slow", n), n * 10) for n in range(100)])
        fast = ScriptedSource([Timed(("fast", n), n * 1000) for n in range(100)])
        one = env.from_source(slow, _strategy(2_000), "slow")
        return one.union(env.from_source(fast, _strategy(2_000), "fast"))

    harness = JobHarness(program, records_per_epoch=5)
    behind = []
    while not harness.status.is_terminal_state():
        harness.run_epoch()
        newest = dict(harness.collected)
        if newest.get("slow", 99) < 99:
            behind.append(newest.get("fast", 0) * 1000 - newest["slow"] * 10)
    assert len(harness.collected) == 200
    # The drift, and what an epoch reads before the master hears of it.
    assert max(behind) <= 2_000 + 2 * 5_000
