"""Buffer timeout: throughput at full speed, and latency at a moderate rate."""

import math
import statistics

from benchmarks.cases import BY_NAME
from benchmarks.latency import GRACE_SECONDS, LatencyCase, Timeline, latencies
from benchmarks.measure import Arguments, Figures, check_count, report, steady_rate
from benchmarks.peers.firesteel_jobs import Firesteel
from benchmarks.sections.latency import LatencyJob, results_of, wait_until_passed
from benchmarks.sections.section import Section
from benchmarks.text import rate_text

# A rate that all timeouts can sustain. In an overloaded job, ages only show how long it has run.
_LATENCY_RATE = 200
# Records at full speed, by timeout. With timeout 0 every record is a row of its own.
_RECORDS = {0: 100_000, 100: 8_000_000, -1: 12_000_000}
# Of the time of a latency case.
_SCALE = 0.5


def median_latency(peer: Firesteel) -> float:
    """Return the median milliseconds from the due time of a record to the sink after a key_by."""
    case = LatencyCase("timeout", "", _LATENCY_RATE, (math.inf, math.inf))
    job = LatencyJob(peer, case.rate, Timeline.of(case, _SCALE, 0).records)
    try:
        with job.running(results_of(job.stream, case)) as client:
            timeline = Timeline.of(case, _SCALE, job.begin())
            wait_until_passed(client, timeline.end + int(GRACE_SECONDS * 1e9))
        found = latencies(job.arrivals, timeline)
    finally:
        job.close()
    check_count("latency", len(found), timeline.results(case))
    return statistics.median(found)


def measure(arguments: Arguments) -> None:
    case = BY_NAME["reduce_1k"]
    for timeout, records in _RECORDS.items():
        setting = (
            {"execution.buffer-timeout.enabled": "false"}
            if timeout < 0
            else {"execution.buffer-timeout.interval": f"{timeout} ms"}
        )
        peer = Firesteel(arguments.parallelism, setting)
        found = steady_rate(case, peer.run, records=arguments.records_of(case, records), repeats=1)
        median = median_latency(peer)
        report(section="timeout", milliseconds=timeout, rate=found.rate, median_latency=median)


def row(figures: Figures) -> list[str]:
    timeout = figures["milliseconds"]
    return [
        f"{timeout} ms" if timeout >= 0 else "-1 (off)",
        rate_text(figures["rate"]),
        f"{figures['median_latency']:,.1f} ms",
    ]


SECTION = Section("timeout", ("buffer timeout", "records/s", "median latency"), row, measure)
