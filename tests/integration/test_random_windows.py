"""Windows on Spark: any streams, epochs, parallelism and restarts give the same final windows.

The harness does the same with far more examples (tests/properties/test_window_jobs.py).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from firesteel.testing import Crash, KillProcess, Pause, Timed
from tests.integration.conftest import MakeEnvironment
from tests.properties.random_windows import expected_windows, kinds, streams, timed, window_job

pytestmark = pytest.mark.execution("real-time")

# What happens at which place of the script: a pause ends an epoch, the others are restarts.
_marks = st.lists(
    st.tuples(
        st.integers(0, 25),
        st.sampled_from([Pause(0.3), Pause(0.3), Crash("at random"), KillProcess()]),
    ),
    min_size=1,
    max_size=3,
)
_CHOICES = {"streams": streams, "marks": _marks, "kind": kinds, "parallelism": st.integers(1, 3)}


def _seldom(examples: int) -> settings:
    # A job takes seconds: an example that fails is shown as it was found, not made smaller.
    return settings(
        max_examples=examples,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def _check(
    make_env: MakeEnvironment, streams: Any, marks: Any, kind: str, parallelism: int
) -> None:
    scripts: list[list[Any]] = [[*timed(stream)] for stream in streams]
    for number, (place, mark) in enumerate(marks):
        scripts[number % len(scripts)].insert(place, mark)
    with tempfile.TemporaryDirectory() as checkpoints:
        env = make_env(
            parallelism,
            execution_checkpointing_interval="100 ms",
            execution_checkpointing_dir=checkpoints,
            restart__strategy_type="fixed-delay",
            restart__strategy_fixed__delay_attempts="10",
            restart__strategy_fixed__delay_delay="10 ms",
            execution_buffer__timeout_interval="5 ms",
        )
        with window_job(env, kind, scripts).execute_and_collect("windows") as results:
            found = Counter(results)
    records = [item for script in scripts for item in script if isinstance(item, Timed)]
    assert found == expected_windows(kind, records)


@given(**_CHOICES)
@_seldom(4)
def test_the_final_windows_are_always_the_same(
    make_env: MakeEnvironment, streams: Any, marks: Any, kind: str, parallelism: int
) -> None:
    _check(make_env, streams, marks, kind, parallelism)


@pytest.mark.slow
@given(**_CHOICES)
@_seldom(40)
def test_the_final_windows_are_always_the_same_in_many_jobs(
    make_env: MakeEnvironment, streams: Any, marks: Any, kind: str, parallelism: int
) -> None:
    _check(make_env, streams, marks, kind, parallelism)
