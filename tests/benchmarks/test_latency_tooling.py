"""The arithmetic of latencies: due times, percentiles, and records that never arrive."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from benchmarks.latency import (
    BY_NAME,
    WARM_UP_SECONDS,
    Arrivals,
    LatencyCase,
    LineServer,
    Timeline,
    latencies,
    percentile,
    report_latency,
)
from benchmarks.sections.catalog import SECTIONS
from benchmarks.sections.scale import _report_line

_CASE = LatencyCase("keyed_1k", "", rate=1_000, goals=(5.0, 25.0))


def test_records_are_due_at_the_rate_and_those_of_the_warm_up_do_not_count() -> None:
    timeline = Timeline.of(_CASE, 0.5, begin=7_000_000_000)
    assert timeline.records == 1_000 * (WARM_UP_SECONDS + 10)
    assert timeline.results(_CASE) == 10_000
    assert timeline.due(0) == 7_001_000_000
    assert timeline.due(timeline.records - 1) == timeline.end
    windows = LatencyCase("two", "", rate=1_000, goals=(5.0, 25.0), exchanges=2)
    assert timeline.results(windows) == 1_000


def test_few_records_per_second_are_measured_for_longer() -> None:
    assert LatencyCase("few", "", rate=10, goals=(5.0, 25.0)).seconds(1.0) == 40.0
    assert _CASE.seconds(1.0) == 20.0


def test_the_percentiles_are_those_of_all_records_that_were_due() -> None:
    found = [float(number) for number in range(1, 101)]
    assert percentile(found, 100, 0.5) == 50.0
    assert percentile(found, 100, 0.99) == 99.0
    assert percentile(found, 100, 1.0) == 100.0
    # 100 more never arrived: they are slower than all others.
    assert percentile(found, 200, 0.5) == 100.0
    assert percentile(found, 200, 0.99) is None


def test_arrivals_are_kept_even_if_the_sink_is_never_closed(tmp_path: Path) -> None:
    timeline = Timeline(begin=0, step=1e6, counted=10, end=30)
    arrivals = Arrivals(str(tmp_path))
    for due in (10, 20, 30, 40):
        arrivals.flush_at = 0
        arrivals.add(due)
    assert len(latencies(str(tmp_path), timeline)) == 2


def test_a_row_marks_a_missed_goal_and_an_overloaded_peer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = BY_NAME["keyed_1k"]
    report_latency(case, [4.0] * 980 + [30.0] * 20, 1_000)
    figures = json.loads(capsys.readouterr().out)
    row = SECTIONS["latency"].row
    assert row(figures | {"peer": "Firesteel"})[2:4] == ["4.0 ms", "30.0 ms !"]
    assert row(figures | {"peer": "bytewax"})[2:4] == ["4.0 ms", "30.0 ms"]
    report_latency(case, [4.0] * 600, 1_000)
    figures = json.loads(capsys.readouterr().out)
    assert row(figures | {"peer": "PyFlink"})[2:4] == ["4.0 ms", "overloaded"]


def test_the_server_of_lines_sends_each_record_when_it_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.latency.WARM_UP_SECONDS", 0.0)
    server = LineServer(_CASE, 0.02)
    server.start()
    received = b""
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        while part := client.recv(1 << 16):
            now = time.time_ns()
            received += part
            assert int(received.split()[-1]) <= now
    server.close()
    assert server.timeline is not None
    lines = [int(line) for line in received.split()]
    assert lines == [server.timeline.due(index) for index in range(server.timeline.records)]


def test_the_cost_of_the_driver_is_a_line_over_the_subtasks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _report_line("real-time", [(8, 3.0), (32, 9.0), (64, 17.0), (200, 51.0)])
    figures = json.loads(capsys.readouterr().out)
    title, _, line, slope = SECTIONS["scale"].row(figures)
    assert title == "real-time, a line (correlation 1.000)"
    assert line == "1.0 ms + 0.250 ms per subtask"
    assert slope == "0.250 ms"
