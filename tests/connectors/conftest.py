from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

from firesteel.datastream.connectors.base import ReaderContext, Source, SourceReader, SourceSplit


def through_json(value: Any) -> Any:
    """Convert as a checkpoint does with positions, committables and state."""
    return json.loads(json.dumps(value))


def persisted(splits: list[SourceSplit]) -> list[SourceSplit]:
    return [
        SourceSplit(split.split_id, through_json(split.properties), through_json(split.position))
        for split in splits
    ]


def drain(reader: SourceReader, limit: int = 7) -> list[Any]:
    """Read until no split is left."""
    records: list[Any] = []
    while reader.snapshot_splits():
        batch = reader.read(limit)
        assert len(batch) <= limit
        records += batch
    assert reader.read(limit) == []
    return records


class Driver:
    """Runs a source the way the runtime does, without Spark."""

    through_json = staticmethod(through_json)
    persisted = staticmethod(persisted)
    drain = staticmethod(drain)

    @staticmethod
    def read_all(source: Source, parallelism: int = 1, limit: int = 7) -> list[list[Any]]:
        """The records of each subtask. The source is pickled to the readers."""
        shipped = cloudpickle.dumps(source)
        enumerator = source.create_enumerator(parallelism)
        splits = persisted(list(enumerator.discover_splits()))
        assert enumerator.is_complete()
        records = []
        for index in range(parallelism):
            reader = cloudpickle.loads(shipped).create_reader(ReaderContext(index, parallelism))
            reader.add_splits(splits[index::parallelism])
            records.append(drain(reader, limit))
            reader.close()
        return records

    @staticmethod
    def read_with_restarts(
        new_reader: Callable[[], SourceReader], splits: list[SourceSplit], steps: list[int]
    ) -> list[Any]:
        """Each step reads that many records; 0 restarts from a snapshot, then all is drained."""
        reader = new_reader()
        reader.add_splits(splits)
        records: list[Any] = []
        for step in steps:
            if step == 0:
                saved = persisted(reader.snapshot_splits())
                reader.read(3)  # lost work of the failed attempt
                reader.close()
                reader = new_reader()
                reader.add_splits(saved)
            else:
                batch = reader.read(step)
                assert len(batch) <= step
                records += batch
        records += drain(reader)
        reader.close()
        return records


@pytest.fixture(scope="session")
def driver() -> Driver:
    return Driver()


class ManualClock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
