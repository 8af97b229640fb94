"""FileSource and event time: no line of a file whose lines are in order is late."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.checkpoint.rules.failure_reason import CheckpointFailedError
from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.time import Time
from firesteel.connectors.files.enumerator import FileSplitEnumerator
from firesteel.connectors.files.paths import FilePaths
from firesteel.connectors.files.source import FileSourceConfig
from firesteel.datastream.connectors.base import SplitEnumerator
from firesteel.datastream.connectors.file_system import (
    FileEnumeratorProvider,
    FileSource,
    StreamFormat,
)
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.errors import JobExecutionError
from firesteel.testing import Fault, JobHarness
from tests.thoroughness import examples

TEXT = StreamFormat.text_line_format()
WINDOW = 1_000


def _lines_per_window(source: FileSource) -> Any:
    """Build a job whose records are the start of a window and the number of its lines."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda line, _: int(line)
    )

    def program(env: Any) -> Any:
        windows = TumblingEventTimeWindows.of(Time.milliseconds(WINDOW))
        lines = env.from_source(source, strategy, "lines")
        ones = lines.map(lambda line: (int(line) // WINDOW, 1))
        return (
            ones.key_by(lambda one: one[0]).window(windows).reduce(lambda a, b: (a[0], a[1] + b[1]))
        )

    return program


def _expected(*files: range) -> Counter[int]:
    return Counter(stamp // WINDOW for stamps in files for stamp in stamps)


def _counted(harness: JobHarness) -> Counter[int]:
    """Return the sum per window. A window that fires twice has lost lines in between."""
    counts: Counter[int] = Counter()
    for window, count in harness.collected:
        assert window not in counts
        counts[window] = count
    return counts


def _write(directory: Path, files: list[range]) -> None:
    for number, stamps in enumerate(files):
        (directory / f"{number:03}.log").write_text("".join(f"{stamp:010}\n" for stamp in stamps))


@pytest.mark.parametrize(
    "enumerator",
    [
        None,
        FileEnumeratorProvider.default_splittable_file_enumerator(),
        FileEnumeratorProvider.default_non_splittable_file_enumerator(),
    ],
    ids=["default", "cut", "whole"],
)
def test_no_line_of_two_files_over_the_same_time_is_late(tmp_path, enumerator):
    """The larger file, cut in two, once lost its second half to the reader of the smaller one."""
    files = [range(0, 200_000, 2), range(0, 210_000, 2)]
    _write(tmp_path, files)
    builder = FileSource.for_record_stream_format(TEXT, str(tmp_path))
    if enumerator is not None:
        builder = builder.set_file_enumerator(enumerator)
    harness = JobHarness(_lines_per_window(builder.build()), parallelism=2, records_per_epoch=9_000)
    harness.run()
    assert _counted(harness) == _expected(*files)


class CutFinely(FileSource):
    """Cuts files into parts of a few lines."""

    def __init__(self, directory: str) -> None:
        self._directory = FilePaths.of((directory,))
        super().__init__(FileSourceConfig(TEXT, self._directory, split_files=True))

    def with_configuration(self, configuration: Any) -> FileSource:
        return self

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return FileSplitEnumerator(
            self._directory,
            TEXT,
            parallelism=parallelism,
            split_files=True,
            discovery_interval=None,
            state=state,
            min_split_bytes=50,
        )


FILES = st.lists(
    st.builds(
        lambda start, count, step: range(start, start + count * step, step),
        st.integers(0, 20_000),
        st.one_of(st.integers(0, 5), st.integers(0, 40)),
        st.integers(1, 700),
    ),
    min_size=1,
    max_size=9,
)


@settings(max_examples=examples(100))
@given(
    files=FILES,
    cut=st.booleans(),
    parallelisms=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    records=st.lists(st.integers(1, 60), min_size=1, max_size=4),
    lost=st.sets(st.integers(2, 12), max_size=3),
)
def test_no_line_is_late_in_any_number_of_files_of_any_size(
    files, cut, parallelisms, records, lost
):
    """Hosts are lost, and the job is stopped and continues with a different parallelism."""
    with TemporaryDirectory() as directory:
        _write(Path(directory), files)
        whole = FileSource.for_record_stream_format(TEXT, directory).build()
        program = _lines_per_window(CutFinely(directory) if cut else whole)
        first, *others = parallelisms
        counts: Counter[int] = Counter()
        harness = JobHarness(program, parallelism=first, records_per_epoch=records)
        for parallelism in others:
            for _ in range(3):
                harness.run_epoch()
            try:
                savepoint = harness.stop()
            except (CheckpointFailedError, JobExecutionError):
                # The job has finished.
                break
            counts += _counted(harness)
            harness = harness.resume(savepoint, parallelism=parallelism)
        faults = dict.fromkeys(harness.places(), Fault.LOSE_HOST)
        harness.run(dict.fromkeys(lost, faults))
        assert counts + _counted(harness) == _expected(*files)


def test_watched_files_wait_for_the_files_that_were_found_with_them(tmp_path):
    files = [range(0, 9_000, 100), range(5_000, 9_000, 100), range(0, 9_000, 300)]
    _write(tmp_path, files)
    source = FileSource.for_record_stream_format(TEXT, str(tmp_path))
    source = source.monitor_continuously(Duration.of_millis(1))
    harness = JobHarness(_lines_per_window(source.build()), records_per_epoch=7)
    for _ in range(60):
        harness.run_epoch()
    # The last window waits for a later file.
    complete = {window: count for window, count in _expected(*files).items() if window < 8}
    assert _counted(harness) == complete
    later = range(9_000, 12_001, 1_000)
    (tmp_path / "later.log").write_text("".join(f"{stamp}\n" for stamp in later))
    for _ in range(60):
        harness.run_epoch()
    assert _counted(harness) == Counter({**_expected(*files), 9: 1, 10: 1, 11: 1})
