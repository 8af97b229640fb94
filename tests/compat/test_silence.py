"""What has no effect yet is refused while the program is built, not ignored."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Duration, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import NotYetSupportedError


def _environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.mark.parametrize(
    "strategy",
    [
        WatermarkStrategy.for_monotonous_timestamps(),
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)),
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, _: value),
    ],
    ids=["monotonous", "bounded", "timestamps"],
)
def test_watermarks_of_a_source(strategy: WatermarkStrategy) -> None:
    with pytest.raises(NotYetSupportedError, match="later version"):
        _environment().from_source(NumberSequenceSource(0, 9), strategy, "numbers")


@pytest.mark.parametrize("strategy", [None, WatermarkStrategy.no_watermarks()])
def test_a_source_without_watermarks(strategy: Any) -> None:
    stream = _environment().from_source(NumberSequenceSource(0, 9), strategy, "numbers")
    assert stream.get_name() == "numbers"
