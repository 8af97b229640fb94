"""Latency: from the moment at which a record is due to its arrival in the sink.

Records are due at a fixed rate, whether the peer is ready for them or not. So a pause delays all
records that are due in it, and all of them count. A record that never arrives counts as the slowest.
"""

import math
import socket
import threading
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from benchmarks.measure import report

# The first seconds warm up the peer and do not count.
WARM_UP_SECONDS = 8.0
_MEASURED_SECONDS = 20.0
# A few records per second need more time for a 99th percentile.
_FEWEST_RECORDS = 400
# The records of a window that its last record completes.
WINDOW_RECORDS = 10
# A peer that cannot keep up gets this long for what is left.
GRACE_SECONDS = 10.0
_FLUSH_NANOSECONDS = 500_000_000
_SENDING_SECONDS = 0.001
# A client that is this late will not catch up.
_LATE_NANOSECONDS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class LatencyCase:
    """A pipeline, the records per second that are due, and the goals in milliseconds."""

    name: str
    title: str
    rate: int
    goals: tuple[float, float]
    checkpoints: bool = False
    exchanges: int = 1

    def seconds(self, scale: float) -> float:
        """Return the seconds of which the records count."""
        return max(_MEASURED_SECONDS, _FEWEST_RECORDS / self.rate) * scale

    @property
    def records_per_result(self) -> int:
        return WINDOW_RECORDS if self.exchanges > 1 else 1


_KEYED, _CHECKPOINTED, _TWO = (5.0, 25.0), (8.0, 50.0), (10.0, 50.0)
LATENCY_CASES = (
    LatencyCase("keyed_10", "key_by, reduce; 10/s", 10, _KEYED),
    LatencyCase("keyed_1k", "key_by, reduce; 1,000/s", 1_000, _KEYED),
    LatencyCase("keyed_100k", "key_by, reduce; 100,000/s", 100_000, _KEYED),
    LatencyCase("checkpoints_10", "checkpoint every second; 10/s", 10, _CHECKPOINTED, True),
    LatencyCase("checkpoints_1k", "checkpoint every second; 1,000/s", 1_000, _CHECKPOINTED, True),
    LatencyCase(
        "checkpoints_100k", "checkpoint every second; 100,000/s", 100_000, _CHECKPOINTED, True
    ),
    LatencyCase("two_exchanges", "key_by, window, key_by, reduce; 1,000/s", 1_000, _TWO, False, 2),
    LatencyCase("kafka", "Kafka to Kafka, at least once; 1,000/s", 1_000, (15.0, 100.0), True),
)
BY_NAME = {case.name: case for case in LATENCY_CASES}
# The cases that every peer can run.
COMMON_CASES = tuple(case for case in LATENCY_CASES if case.name != "kafka")


def key_of(due: int) -> int:
    """Return the key of a record, which is the nanosecond at which it is due."""
    return due // 1_000_000 % 997


def window_key_of(due: int) -> int:
    """Return a key of which there are few, so that some windows are complete at any time."""
    return due // 1_000_000 % 11


def second_key_of(due: int) -> int:
    return due // 10_000_000 % 101


def latest(_: int, due: int) -> int:
    """The reduction: every record yields a result, which is the record itself."""
    return due


@dataclass(frozen=True, slots=True)
class Timeline:
    """Records are due every ``step`` nanoseconds after ``begin``. Those after ``counted`` count."""

    begin: int
    step: float
    counted: int
    end: int

    @classmethod
    def of(cls, case: LatencyCase, scale: float, begin: int) -> "Timeline":
        counted = begin + int(WARM_UP_SECONDS * 1e9)
        return cls(begin, 1e9 / case.rate, counted, counted + int(case.seconds(scale) * 1e9))

    @property
    def records(self) -> int:
        return int((self.end - self.begin) / self.step)

    def results(self, case: LatencyCase) -> int:
        """Return the number of results that count."""
        return int((self.end - self.counted) / self.step / case.records_per_result)

    def due(self, index: int) -> int:
        return self.begin + int((index + 1) * self.step)


class Arrivals:
    """Writes when each record was due and when it arrived. A job may be stopped at any time."""

    def __init__(self, directory: str) -> None:
        self.path = Path(directory, uuid4().hex)
        self.pairs = array("q")
        self.flush_at = 0

    def add(self, due: int) -> None:
        now = time.time_ns()
        self.pairs.append(due)
        self.pairs.append(now)
        if now >= self.flush_at:
            self.flush()
            self.flush_at = now + _FLUSH_NANOSECONDS

    def flush(self) -> None:
        with self.path.open("ab") as file:
            self.pairs.tofile(file)
        del self.pairs[:]


def arrivals_in(directory: str) -> Iterator[tuple[int, int]]:
    """Yield when each record was due and when it arrived."""
    for path in Path(directory).iterdir():
        pairs = array("q", path.read_bytes())
        yield from zip(pairs[::2], pairs[1::2], strict=True)


def latencies(directory: str, timeline: Timeline) -> list[float]:
    """Return the milliseconds of all records that count, in order."""
    return sorted(
        (arrived - due) / 1e6
        for due, arrived in arrivals_in(directory)
        if timeline.counted < due <= timeline.end
    )


def percentile(found: list[float], expected: int, share: float) -> float | None:
    """Return a percentile of ``expected`` records, or None if too many of them are missing."""
    index = max(0, math.ceil(share * max(expected, len(found))) - 1)
    return found[index] if index < len(found) else None


def report_latency(case: LatencyCase, found: list[float], expected: int) -> None:
    # Results of windows that were open at the end of the measurement are not missing.
    if len(found) >= 0.99 * expected:
        expected = len(found)
    report(
        section="latency",
        case=case.name,
        records=len(found),
        expected=expected,
        p50=percentile(found, expected, 0.5),
        p99=percentile(found, expected, 0.99),
        p999=percentile(found, expected, 0.999),
        longest=percentile(found, expected, 1.0),
    )


class LineServer:
    """Sends the due time of each record as a line of text when it is due, to one client.

    For peers without a source that can be paced. It stops at the end of the timeline, whether the
    client has taken all lines or not.
    """

    def __init__(self, case: LatencyCase, scale: float) -> None:
        self._case = case
        self._scale = scale
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.timeline: Timeline | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    def close(self) -> None:
        self._server.close()

    def _serve(self) -> None:
        try:
            client, _ = self._server.accept()
            with client:
                self._send(client)
        except OSError:
            # The job was stopped.
            return

    def _send(self, client: socket.socket) -> None:
        # The job gets a moment to start its other tasks.
        timeline = Timeline.of(self._case, self._scale, time.time_ns() + int(2e9))
        self.timeline = timeline
        sent, records = 0, timeline.records
        while sent < records:
            now = time.time_ns()
            due = min(records, int((now - timeline.begin) / timeline.step))
            if due > sent:
                lines = "".join(f"{timeline.due(index)}\n" for index in range(sent, due))
                client.sendall(lines.encode())
                sent = due
            if time.time_ns() > timeline.end + _LATE_NANOSECONDS:
                return
            time.sleep(_SENDING_SECONDS)
