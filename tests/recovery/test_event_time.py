"""Event time across restarts: windows fire once, and what was late stays late."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from firesteel.common import Configuration, Duration, Types, WatermarkStrategy
from firesteel.common.time import Time
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import OutputTag, ProcessWindowFunction
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import JobHarness, ScriptedSource, Timed
from tests.recovery.jobs import RESTARTS

LATE = OutputTag("late")


class Second(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


# Mostly in order, with some that come much too late.
RECORDS = [
    (number % 3, number * 10 - (400 if number % 7 == 0 else number % 5 * 4))
    for number in range(120)
]


def windows(env: Any) -> Any:
    env.get_config().set_auto_watermark_interval(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(20))
    records = env.from_collection(RECORDS).set_parallelism(1).uid("records")
    timed = records.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Second()))
    windowed = (
        timed.key_by(lambda r: r[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
        .side_output_late_data(LATE)
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .uid("windows")
    )
    return windowed, windowed.get_side_output(LATE)


def run(crashes: tuple[int, ...], *, driver: bool, every: int) -> list[Counter[Any]]:
    configuration = Configuration(RESTARTS)
    harness = JobHarness(
        windows,
        parallelism=2,
        records_per_epoch=4,
        checkpoint_every=every,
        configuration=configuration,
    )
    collected: list[Counter[Any]] = [Counter(), Counter()]
    number = 0

    def keep() -> None:
        for stream, records in zip(collected, harness.collected_by_stream, strict=True):
            stream.update(records)

    while harness.run_epoch():
        number += 1
        if number in crashes and driver:
            keep()
            harness.kill()
            harness = harness.resume()
        elif number in crashes:
            harness.crash()
    keep()
    return collected


@pytest.mark.parametrize("driver", [False, True], ids=["job", "driver"])
@pytest.mark.parametrize("crashes", [(5,), (9, 17), (8, 12, 16, 20, 24)], ids=str)
@pytest.mark.parametrize("every", [1, 3])
def test_a_crash_makes_nothing_late_and_nothing_early(
    crashes: tuple[int, ...], driver: bool, every: int
) -> None:
    clean = run((), driver=False, every=every)
    assert clean[0]
    assert clean[1], "some records are late"
    assert run(crashes, driver=driver, every=every) == clean


class Firing(ProcessWindowFunction[Any, Any, Any, Any]):
    """Counts firings per window and per key, in states named like the runtime's own."""

    _times = ValueStateDescriptor("100", Types.LONG())
    _windows = ValueStateDescriptor("slice/100", Types.LONG())

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        times = context.window_state().get_state(self._times)
        times.update((times.value() or 0) + 1)
        windows = context.global_state().get_state(self._windows)
        if times.value() == 1:
            windows.update((windows.value() or 0) + 1)
        yield context.window().start, times.value(), windows.value(), list(elements)

    def clear(self, context: Any) -> None:
        context.window_state().get_state(self._times).clear()


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_states_of_windows_survive_a_crash_beside_the_windows_themselves(backend: str) -> None:
    script = [Timed(("k", 1), time) for time in (1, 250, 2, 260, 150, 3, 1_000)]

    def program(env: Any) -> Any:
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        stream = env.from_source(ScriptedSource(script), strategy, "script")
        windows = stream.key_by(lambda r: r[0]).window(
            TumblingEventTimeWindows.of(Time.milliseconds(100))
        )
        return windows.allowed_lateness(500).reduce(lambda a, b: (a[0], a[1] + b[1]), Firing())

    def collected(crashes: tuple[int, ...]) -> list[Any]:
        configuration = Configuration(RESTARTS)
        configuration.set_string("state.backend.type", backend)
        harness = JobHarness(
            program, records_per_epoch=1, checkpoint_every=1, configuration=configuration
        )
        number = 0
        while harness.run_epoch():
            number += 1
            assert number < 50
            if number in crashes:
                harness.crash()
        return list(harness.collected)

    expected = collected(())
    assert [firing[:3] for firing in expected] == [
        (0, 1, 1),
        (0, 2, 1),
        (100, 1, 2),
        (0, 3, 2),
        (200, 1, 3),
        (1000, 1, 4),
    ]
    for crash in range(1, 9):
        assert collected((crash,)) == expected
