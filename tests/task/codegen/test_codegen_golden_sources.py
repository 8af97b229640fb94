"""The generated source of whole programs, compared with the text files in ``golden``.

After a change that is meant to change generated code, write the files again and review the difference:
``pytest tests/task/codegen --update-golden``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream.functions import SinkFunction
from firesteel.task.codegen import aggregations, fusion, key_loops
from firesteel.task.codegen.compilation import define
from firesteel.testing import JobHarness

GOLDEN = Path(__file__).parent / "golden"


class Ignore(SinkFunction):
    def invoke(self, value: Any, context: Any) -> None:
        pass


def with_event_time(stream: Any) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    return stream.assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda record, _: record[1])
    )


def fan_out(stream: Any) -> None:
    shared = stream.map(lambda record: record[1])
    shared.filter(lambda n: n > 1).add_sink(Ignore())
    shared.map(str).add_sink(Ignore())


def diamond(stream: Any) -> None:
    shared = stream.map(lambda record: record[1])
    even, odd = (shared.filter(lambda n, rest=rest: n % 2 == rest) for rest in (0, 1))
    even.union(odd).map(str).add_sink(Ignore())


# Each takes a stream of pairs of a whole number and its square.
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "map_filter_sink": lambda s: s.map(str).filter(len).add_sink(Ignore()),
    "map_filter_sink_with_timestamps": lambda s: (
        with_event_time(s).map(str).filter(len).add_sink(Ignore())
    ),
    "flat_map_between_two_loops": lambda s: (
        s.map(str).filter(len).flat_map(list).map(ord).add_sink(Ignore())
    ),
    "declared_type_ends_a_loop": lambda s: (
        s.map(str, output_type=Types.STRING()).map(len).add_sink(Ignore())
    ),
    "fan_out": fan_out,
    "diamond": diamond,
    "reduce_with_an_expression_as_key": lambda s: (
        s.key_by(lambda record: record[0] % 10).reduce(max).map(str).add_sink(Ignore())
    ),
    "reduce_with_timestamps": lambda s: (
        with_event_time(s).key_by(lambda record: record[0]).reduce(max).add_sink(Ignore())
    ),
    "reduce_with_a_called_key_selector": lambda s: (
        s.key_by(lambda record: str(record[0])).reduce(max).filter(len).add_sink(Ignore())
    ),
    "sum_of_pairs": lambda s: s.key_by(lambda record: record[0]).sum(1).add_sink(Ignore()),
    "max_of_a_field_of_three": lambda s: (
        s.map(lambda record: (*record, ""))
        .key_by(lambda record: record[0])
        .max(-2)
        .add_sink(Ignore())
    ),
    "min_by_of_lists": lambda s: (
        s.map(list).key_by(lambda record: record[0]).min_by(1).add_sink(Ignore())
    ),
    "sum_of_integers": lambda s: (
        s.map(lambda record: record[1]).key_by(lambda n: n % 3).sum().add_sink(Ignore())
    ),
    "keys_for_a_process_function": lambda s: s.key_by(lambda record: record[0] * 2).map(len),
}


def sources_of(program: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the program, and return the distinct sources of it in the order of their compilation."""
    sources: dict[str, None] = {}

    def spy(source: str, title: str, names: dict[str, Any]) -> Callable[..., Any]:
        sources[f"# {title}\n{source}"] = None
        return define(source, title, names)

    for module in (aggregations, fusion, key_loops):
        monkeypatch.setattr(module, "define", spy)
    pairs = [(n, n * n) for n in range(6)]
    JobHarness(lambda env: program(env.from_collection(pairs)), parallelism=2).run()
    return "\n".join(sources)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_source_is_that_of_the_golden_file(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = sources_of(PROGRAMS[name], monkeypatch)
    file = GOLDEN / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        file.write_text(found)
    assert found == file.read_text(), "see the docstring of this file for how to update it"


def test_each_golden_file_belongs_to_a_program() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == set(PROGRAMS)
