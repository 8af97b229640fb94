"""What a job harness makes of a program: a compiled job, whose results stay within the test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.config.checkpoint_options import (
    CHECKPOINT_DIR,
    CHECKPOINT_STORAGE,
    CHECKPOINTING_INTERVAL,
)
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.data_stream.stream_base import StreamBase
from firesteel.datastream.stream_execution_environment.job_compiler import CompiledJob
from firesteel.graph.operator_specs import CollectSpec
from firesteel.graph.transformations import Transformation
from firesteel.master.rate_control import RateControl
from firesteel.task.messages import ReadBudget

Program = Callable[[StreamExecutionEnvironment], Any]
"""Builds a job; what it returns (a stream, or a tuple of streams) is collected."""


@dataclass(slots=True)
class CollectedRecords:
    """The driver object of a collected stream."""

    records: list[Any] = field(default_factory=list)

    def add(self, records: list[Any]) -> None:
        self.records += records


@dataclass(slots=True)
class ScriptedRate(RateControl):
    """Says how many records each epoch may read, whatever it takes."""

    target_seconds: float = 0.0
    records: Iterable[int] = (1000,)
    _remaining: Any = None

    def budget(self) -> ReadBudget:
        if self._remaining is None:
            self._remaining = cycle(self.records)
        return ReadBudget(next(self._remaining), float("inf"))

    def epoch_took(self, seconds: float, records_of_fullest_slot: int) -> None:
        """A script does not learn."""


def compile_program(
    program: Program, parallelism: int, configuration: Configuration
) -> tuple[CompiledJob, list[CollectedRecords]]:
    environment = StreamExecutionEnvironment(configuration).set_parallelism(parallelism)
    returned = program(environment)
    streams = returned if isinstance(returned, tuple) else (returned,)
    collected: list[CollectedRecords] = []
    sinks = []
    for stream in streams:
        if not isinstance(stream, StreamBase):
            continue
        collected.append(CollectedRecords())
        sinks.append(
            Transformation(
                name="Data stream collect sink",
                spec=CollectSpec(),
                inputs=(stream._origins,),
                driver_object=collected[-1],
                parallelism=stream._common_parallelism(),
            )
        )
    return environment._compile("harness", *sinks), collected


def with_checkpoints(configuration: Configuration, root: str) -> Configuration:
    """Checkpoints are on, but none is taken unless the harness asks for it."""
    configuration = Configuration(configuration)
    if not configuration.contains(CHECKPOINTING_INTERVAL):
        configuration.set_string(CHECKPOINTING_INTERVAL.key, "36500 d")
    if not configuration.contains(CHECKPOINT_STORAGE) and not configuration.contains(
        CHECKPOINT_DIR
    ):
        configuration.set_string(CHECKPOINT_DIR.key, root)
    return configuration
