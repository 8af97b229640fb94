"""Records between a job and its client: nothing is lost, nothing comes twice."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

from firesteel.dispatcher.results import ResultReader, ResultWriter
from tests.waiting import wait_until


def read_all(reader: ResultReader) -> list[int]:
    return [record for _, batch in reader.read(0, 1 << 30) for record in pickle.loads(batch)]


def test_records_arrive_in_order(tmp_path: Path) -> None:
    writer = ResultWriter(tmp_path, 1 << 20)
    for start in range(0, 20_000, 100):
        writer.add(list(range(start, start + 100)))
    writer.flush()
    assert read_all(ResultReader(tmp_path)) == list(range(20_000))


def test_records_leave_without_a_call_of_flush(tmp_path: Path) -> None:
    ResultWriter(tmp_path, 1 << 20).add([1])
    wait_until(lambda: read_all(ResultReader(tmp_path)) == [1])


def test_batches_stay_until_the_reader_confirms_them(tmp_path: Path) -> None:
    writer = ResultWriter(tmp_path, 1 << 20)
    for record in range(3):
        writer.add([record])
        writer.flush()
    reader = ResultReader(tmp_path)
    assert [number for number, _ in reader.read(0, 1)] == [1]
    # The answer was lost on its way, so the client asks again.
    assert [number for number, _ in reader.read(0, 1)] == [1]
    assert [number for number, _ in reader.read(1, 1 << 20)] == [2, 3]
    assert [number for number, _ in reader.read(0, 1 << 20)] == [2, 3]


def test_a_job_that_is_too_far_ahead_waits_for_its_reader(tmp_path: Path) -> None:
    writer = ResultWriter(tmp_path, limit=10)
    writer.add([b"x" * 100])
    writer.flush()
    second = threading.Thread(target=writer.add, args=([2],), daemon=True)
    second.start()
    second.join(0.3)
    assert second.is_alive()
    ResultReader(tmp_path).read(after=1, max_bytes=1)
    second.join(10)
    assert not second.is_alive()


def test_a_canceled_job_does_not_wait_for_its_reader(tmp_path: Path) -> None:
    writer = ResultWriter(tmp_path, limit=1)
    writer.add([1])
    writer.flush()
    second = threading.Thread(target=writer.add, args=([2],), daemon=True)
    second.start()
    second.join(0.1)
    assert second.is_alive()
    writer.release()
    second.join(10)
    assert not second.is_alive()


def test_records_without_a_reader_are_dropped(tmp_path: Path) -> None:
    writer = ResultWriter(tmp_path, 1 << 20)
    writer.add([1])
    writer.flush()
    reader = ResultReader(tmp_path)
    reader.close()
    writer.add([2])
    writer.flush()
    assert read_all(reader) == []


def test_there_are_no_records_before_the_job_begins(tmp_path: Path) -> None:
    assert ResultReader(tmp_path / "7").read(0, 100) == []
