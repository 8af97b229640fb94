"""Metrics cost nothing per record: Firesteel's own functions run per batch."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import firesteel
from firesteel.common import Configuration, WatermarkStrategy
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.testing import JobHarness

PACKAGE = str(Path(firesteel.__file__).parent)


def calls(records: int) -> Counter[str]:
    """Run a job in one epoch, and count the calls of Firesteel's functions by file."""
    found: Counter[str] = Counter()

    def program(env: Any) -> None:
        source = NumberSequenceSource(0, records - 1)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        pairs = numbers.map(lambda number: (number % 10, number)).filter(lambda pair: True)
        sums = pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
        sums.filter(lambda pair: False).print()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found[frame.f_code.co_filename.removeprefix(PACKAGE)] += 1

    # Real time has as many rounds as the machine has time for.
    configuration = Configuration().set_string("firesteel.execution", "micro-batch")
    harness = JobHarness(program, records_per_epoch=10**6, configuration=configuration)
    sys.setprofile(count)
    try:
        harness.run()
    finally:
        sys.setprofile(None)
    return found


@pytest.fixture(scope="module")
def more() -> Counter[str]:
    """The calls that 30,000 more records bring about."""
    # The first job fills tables that all jobs use.
    calls(31_000)
    return calls(31_000) - calls(1_000)


def test_no_function_of_ours_runs_for_each_record(more: Counter[str]) -> None:
    # A chunk of a source has some hundred records, and each file may do its work once per chunk.
    assert max(more.values()) < 30_000 / 10, more.most_common(10)


def test_metrics_are_not_read_per_batch(more: Counter[str]) -> None:
    assert [file for file in more if file.startswith(("/metrics/", "/protocol/reports.py"))] == []
