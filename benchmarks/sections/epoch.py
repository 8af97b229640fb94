"""Duration of an almost empty epoch in micro-batches, compared with the micro-batch of a bare query.

Both take turns in one Spark session with the same settings. The median time from one epoch to the
next counts, without start-up.
"""

import pickle
import statistics
import tempfile
import time
import uuid
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.cases import double
from benchmarks.measure import Arguments, Figures, check_count, report
from benchmarks.peers.bare_query import moments_of_bare_epochs
from benchmarks.peers.firesteel_jobs import Firesteel, numbers
from benchmarks.peers.job_session import job_session
from benchmarks.sections.section import Section
from benchmarks.text import ratio_text
from firesteel.datastream.functions import SinkFunction

_RECORDS = 100
# Epochs per run, and the number of epochs at the start that do not count.
_EPOCHS, _FIRST = 32, 8
_EXCHANGES = (0, 1, 2)
# Maximum ratio of an epoch to a micro-batch.
_GOAL = 1.3


class Moments(SinkFunction):
    """Records the arrival time of each record."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.moments: list[float] = []

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self.moments.append(time.monotonic())

    def close(self) -> None:
        Path(self.directory, uuid.uuid4().hex).write_bytes(pickle.dumps(self.moments))


def moments_of_epochs(peer: Firesteel, exchanges: int) -> list[float]:
    """Return the arrival time of the last record of each epoch at a sink.

    A sink receives the same number of records in every epoch.
    """
    env = peer.environment()
    stream = numbers(env, 0, _EPOCHS * _RECORDS).map(double)
    for _ in range(exchanges):
        stream = stream.rebalance().map(double)
    with tempfile.TemporaryDirectory() as directory:
        stream.add_sink(Moments(directory))
        env.execute("epochs")
        sinks = [pickle.loads(path.read_bytes()) for path in Path(directory).iterdir()]
    check_count("epochs", sum(map(len, sinks)), _EPOCHS * _RECORDS)
    of_epoch = _RECORDS // peer.parallelism
    return list(sinks[0][of_epoch - 1 :: of_epoch])


def steps(moments: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(moments[_FIRST:])]


def measure(arguments: Arguments) -> None:
    settings = {
        "firesteel.execution": "micro-batch",
        "firesteel.epoch.max-records": str(_RECORDS // arguments.parallelism),
    }
    peer = Firesteel(arguments.parallelism, settings)
    session = job_session(arguments.parallelism)
    for exchanges in _EXCHANGES:
        own: list[float] = []
        bare: list[float] = []
        for _ in range(arguments.repeats):
            own += steps(moments_of_epochs(peer, exchanges))
            bare += steps(
                moments_of_bare_epochs(
                    session,
                    parallelism=arguments.parallelism,
                    exchanges=exchanges,
                    records=_RECORDS,
                    epochs=_EPOCHS,
                )
            )
        report(
            section="epoch",
            exchanges=exchanges,
            milliseconds=statistics.median(own) * 1_000,
            floor=statistics.median(bare) * 1_000,
        )


def row(figures: Figures) -> list[str]:
    exchanges, milliseconds, floor = (
        figures[name] for name in ("exchanges", "milliseconds", "floor")
    )
    title = f"{exchanges} exchange{'' if exchanges == 1 else 's'}"
    ratio = milliseconds / floor
    mark = " !" if ratio > _GOAL else ""
    return [title, f"{milliseconds:.0f} ms", f"{floor:.0f} ms", ratio_text(ratio) + mark]


SECTION = Section("epoch", ("epoch of 100 records", "Firesteel", "bare query", ""), row, measure)
