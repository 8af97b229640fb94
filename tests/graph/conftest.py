"""Programs written as transformations, without the API."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Types
from firesteel.graph import stream_graph_generator
from firesteel.graph.job_graph import JobGraph, generate_job_graph
from firesteel.graph.levels import Levels, assign_levels
from firesteel.graph.operator_specs import (
    CoMapSpec,
    DataFrameSourceSpec,
    MapSpec,
    PrintSpec,
    SourceSpec,
)
from firesteel.graph.partitioning import Partitioning
from firesteel.graph.settings import GraphSettings
from firesteel.graph.stream_graph import StreamGraph
from firesteel.graph.transformations import Origin, Transformation

Input = Transformation | Origin


class Program:
    """Collects transformations; every method returns the new one."""

    def __init__(self, **settings: Any) -> None:
        self.settings = GraphSettings(**settings)
        self.transformations: list[Transformation] = []

    def source(self, name: str = "numbers", **fields: Any) -> Transformation:
        return self._add(Transformation(name, SourceSpec(None), **fields))

    def data_frame(self, name: str = "frame", **fields: Any) -> Transformation:
        return self._add(
            Transformation(
                name, DataFrameSourceSpec(Types.ROW_NAMED(["a"], [Types.LONG()])), **fields
            )
        )

    def map(self, *inputs: Input, name: str = "Map", **fields: Any) -> Transformation:
        """Several inputs: a union of them."""
        return self._add(
            Transformation(name, MapSpec(abs), (tuple(map(_origin, inputs)),), **fields)
        )

    def co_map(self, first: Input, second: Input, **fields: Any) -> Transformation:
        inputs = ((_origin(first),), (_origin(second),))
        return self._add(Transformation("Co-Map", CoMapSpec(None), inputs, **fields))

    def print(self, *inputs: Input, **fields: Any) -> Transformation:
        spec = PrintSpec(None, None)
        return self._add(
            Transformation("Print to Std. Out", spec, (tuple(map(_origin, inputs)),), **fields)
        )

    def _add(self, transformation: Transformation) -> Transformation:
        self.transformations.append(transformation)
        return transformation

    def stream_graph(self) -> StreamGraph:
        return stream_graph_generator.generate(self.transformations, self.settings)

    def job_graph(self) -> JobGraph:
        return generate_job_graph(self.stream_graph(), self.settings)

    def levels(self) -> Levels:
        return assign_levels(self.job_graph())

    def chains(self) -> list[str]:
        return [vertex.name for vertex in self.job_graph().vertices]


def _origin(value: Input) -> Origin:
    return value if isinstance(value, Origin) else Origin(value)


@pytest.fixture(name="program")
def _program() -> type[Program]:
    return Program


@pytest.fixture(name="shipped")
def _shipped() -> Any:
    def shipped(transformation: Transformation, how: Partitioning) -> Origin:
        return Origin(transformation, partitioning=how)

    return shipped
