"""Counts the files that a job executes: the source of the figures in docs/architecture.md.

``python -m tools.trace_files`` runs two small jobs in the harness, in real time and in micro-batches.
For each it prints the files of Firesteel that execute a function: in the whole run, and on the path
of a record, which is everything that runs while a slot works on rows, from the head of a subtask to
the driver's output.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

import firesteel
from firesteel.common import Configuration, Time, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import JobHarness

_PACKAGE = f"{Path(firesteel.__file__).parent}/"
EXECUTIONS = ("real-time", "micro-batch")
# The path of a record is everything that these functions of the slots and the driver call. Live
# slots have _accept_rows, read_some and _flush_in_time, slots of micro-batches have read_epoch.
_ON_THE_PATH = {
    "_accept_rows",
    "_flush_in_time",
    "accept",
    "print_lines",
    "read_epoch",
    "read_some",
    "sort_output",
}


class _SecondField(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


def reduce_job(env: StreamExecutionEnvironment) -> None:
    """``map().key_by().reduce().print()``."""
    numbers = env.from_collection(list(range(1000))).map(lambda n: (n % 10, n))
    numbers.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).print()


def window_job(env: StreamExecutionEnvironment) -> None:
    """A reduction in tumbling windows of event time."""
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    pairs = env.from_collection([(n % 10, n) for n in range(1000)])
    timed = pairs.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(_SecondField()))
    windows = timed.key_by(lambda pair: pair[0]).window(
        TumblingEventTimeWindows.of(Time.milliseconds(100))
    )
    windows.reduce(lambda a, b: (a[0], a[1] + b[1])).print()


def files_of(
    job: Callable[[StreamExecutionEnvironment], None], execution: str
) -> tuple[set[str], set[str]]:
    """Return the files that the job executes, and those on the path of its records."""
    configuration = Configuration().set_string("firesteel.execution", execution)
    everything: set[str] = set()
    path: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(_PACKAGE) or frame.f_code.co_name == "<module>":
            return
        file = name.removeprefix(_PACKAGE)
        everything.add(file)
        caller: FrameType | None = frame
        while caller is not None:
            code = caller.f_code
            if code.co_name in _ON_THE_PATH and code.co_filename.startswith(_PACKAGE):
                path.add(file)
                return
            caller = caller.f_back

    sys.setprofile(note)
    try:
        JobHarness(job, parallelism=2, records_per_epoch=50, configuration=configuration).run()
    finally:
        sys.setprofile(None)
    return everything, path


def main() -> None:
    runs = [(job, execution) for job in (reduce_job, window_job) for execution in EXECUTIONS]
    # A process per run: functions whose results an earlier run has cached would not run again.
    with get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        traced = pool.starmap(files_of, runs, chunksize=1)
    for (job, execution), (everything, path) in zip(runs, traced, strict=True):
        figures = f"{len(everything)} files, {len(path)} on the path"
        sys.stdout.write(f"{job.__name__}, {execution}: {figures}\n")
        sys.stdout.writelines(f"  {file}\n" for file in sorted(path))


if __name__ == "__main__":
    main()
