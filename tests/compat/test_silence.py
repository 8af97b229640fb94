"""What has no effect yet is refused while the program is built, not ignored."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource


def _environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.mark.parametrize("strategy", [None, WatermarkStrategy.no_watermarks()])
def test_a_source_without_watermarks(strategy: Any) -> None:
    stream = _environment().from_source(NumberSequenceSource(0, 9), strategy, "numbers")
    assert stream.get_name() == "numbers"
