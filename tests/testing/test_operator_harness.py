"""Calls that the operator harness refuses because no job would make them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from firesteel.errors import InvalidProgramError, RescalingError
from firesteel.testing import OperatorHarness
from firesteel.usercode import pickling

_INPUTS: dict[str, Callable[[OperatorHarness], object]] = {
    "record": lambda harness: harness.process_element(2),
    "records": lambda harness: harness.process_elements([2, 3]),
    "watermark": lambda harness: harness.process_watermark(5),
}


def _doubling(parallelism: int = 1) -> OperatorHarness:
    return OperatorHarness.of(lambda stream: stream.map(lambda value: 2 * value), parallelism)


@pytest.mark.parametrize("name", [*_INPUTS, "snapshot", "finish", "time", "open"])
def test_a_closed_operator_does_nothing_more(name: str) -> None:
    others: dict[str, Callable[[OperatorHarness], object]] = {
        "snapshot": lambda harness: harness.snapshot(),
        "finish": lambda harness: harness.finish(),
        "time": lambda harness: harness.set_processing_time(7),
        "open": lambda harness: harness.open(),
    }
    harness = _doubling()
    harness.process_element(1)
    harness.close()
    with pytest.raises(InvalidProgramError, match="'Map' is closed: create a new harness"):
        {**_INPUTS, **others}[name](harness)
    assert harness.output == [2]
    harness.close()


@pytest.mark.parametrize("name", _INPUTS)
def test_nothing_comes_in_behind_the_end_of_the_inputs(name: str) -> None:
    with _doubling() as harness:
        harness.process_element(1)
        harness.finish()
        with pytest.raises(InvalidProgramError, match="'Map' takes no input after finish"):
            _INPUTS[name](harness)
        assert harness.output == [2]
        # The last checkpoint comes after it.
        harness.finish()
        harness.snapshot()


def test_state_that_an_operator_cannot_share_out_keeps_its_parallelism() -> None:
    with _doubling() as harness:
        snapshot = replace(harness.snapshot(), whole=pickling.dumps("of its own"))
    with pytest.raises(RescalingError, match="'Map' has state that cannot be divided"):
        OperatorHarness.restored(lambda stream: stream.map(str), snapshot, parallelism=2)
