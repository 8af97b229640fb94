"""The clock: a Python data source that starts epochs and runs level 0.

Spark asks the stream reader for the latest offset. The reader asks the driver for the next epoch
and waits there until one is due. The partitions of an epoch carry the control of the slots. Reading
a partition runs level 0.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from multiprocessing.connection import Client, Connection
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from firesteel.protocol.messages import SlotControl, decode
from firesteel.protocol.rows import SPARK_SCHEMA, to_record_batch
from firesteel.slothost.client import HostSettings
from firesteel.spark.slot_task import SlotTask
from firesteel.task.slot import control_row

FORMAT = "firesteel-clock"
# The batch reader asks for the only epoch of its job.
ONLY_EPOCH = -1


def clock_options(task: SlotTask, address: str, token: str) -> dict[str, str]:
    """Return the options of the clock, as text: a data source gets nothing else from the driver."""
    hosts = task.hosts
    return {
        "address": address,
        "token": token,
        "task": json.dumps(
            {
                "program_file": task.program_file,
                "batch": task.batch,
                "max_attempts": task.max_attempts,
            }
        ),
        # Spark masks the values of options whose name contains "token".
        "host_token": json.dumps(None if hosts is None else asdict(hosts)),
    }


def _task_of(options: Any) -> SlotTask:
    hosts = json.loads(options["host_token"])
    if hosts is not None and hosts["slot_directory"] is not None:
        hosts["slot_directory"] = tuple(hosts["slot_directory"])
    return SlotTask(
        hosts=None if hosts is None else HostSettings(**hosts), **json.loads(options["task"])
    )


class EpochClient:
    """Asks the driver for epochs. The first question opens the connection."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._token = token
        self._connection: Connection | None = None

    def ask(self, question: str, epoch: int) -> Any:
        if self._connection is None:
            self._connection = Client(self._address, family="AF_UNIX", authkey=self._token.encode())
        self._connection.send((question, epoch))
        return self._connection.recv()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_address": self._address, "_token": self._token, "_connection": None}


def read_partition(task: SlotTask, payload: bytes) -> Iterator[pa.RecordBatch]:
    """Hand the other levels their control rows, then run level 0."""
    own, others = decode(payload)
    assert isinstance(own, SlotControl)
    if others:
        yield to_record_batch([control_row(control) for control in others])
    yield from task.run(own.address, None, own)


class _StreamReader(DataSourceStreamReader):
    def __init__(self, options: Any) -> None:
        self._task = _task_of(options)
        self._epochs = EpochClient(options["address"], options["token"])

    def initialOffset(self) -> dict[str, int]:
        return {"epoch": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        return {"epoch": self._epochs.ask("next", start["epoch"])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(part) for part in self._epochs.ask("partitions", end["epoch"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._task, partition.value)

    def stop(self) -> None:
        """Close the connection to the driver. PySpark calls it when the planning worker ends."""
        self._epochs.close()
        if isinstance(sys.exc_info()[1], (EOFError, ConnectionError)):
            # Spark has closed its connection, as it does with every query that ends. PySpark would
            # report the error on that connection, fail, and print a traceback of its daemon.
            os._exit(0)


class _BatchReader(DataSourceReader):
    def __init__(self, options: Any) -> None:
        self._task = _task_of(options)
        self._epochs = EpochClient(options["address"], options["token"])

    def partitions(self) -> Sequence[InputPartition]:
        try:
            return [InputPartition(part) for part in self._epochs.ask("partitions", ONLY_EPOCH)]
        finally:
            self._epochs.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._task, partition.value)


class ClockSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SPARK_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _StreamReader(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _BatchReader(self.options)
