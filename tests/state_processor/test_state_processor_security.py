"""Claims of the security page about reading snapshots."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from firesteel.checkpoint.savepoints.keyed_state_files import ForeignClassError
from firesteel.checkpoint.storage.discovery import find_checkpoint
from firesteel.cli.main import main
from firesteel.common import Types
from firesteel.datastream import MapFunction, StreamExecutionEnvironment
from firesteel.datastream.functions import BroadcastProcessFunction, CheckpointedFunction
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor
from firesteel.state_processor import SavepointReader
from tests.state_processor.jobs import Point, counting, harness_of

ANY = Types.PICKLED_BYTE_ARRAY()
RULES = MapStateDescriptor("rules", Types.STRING(), ANY)


class KeepsPoints(MapFunction, CheckpointedFunction):
    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.points = store.get_list_state(ListStateDescriptor("points", ANY))

    def snapshot_state(self, context: Any) -> None:
        self.points.update([Point(1)])

    def map(self, value: Any) -> Any:
        return value


class KeepsRules(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put("limit", Point(value))


def _keeping(env: StreamExecutionEnvironment) -> Any:
    numbers = env.from_collection(list(range(60))).map(KeepsPoints()).uid("points")
    rules = env.from_collection([7]).broadcast(RULES)
    return numbers.connect(rules).process(KeepsRules()).uid("rules")


def test_looking_into_a_snapshot_rebuilds_no_object_of_the_job() -> None:
    for program in (partial(counting, points=True), _keeping):
        harness = harness_of(program)
        paths = [harness.checkpoint(), harness.savepoint()]
        Point.rebuilt = 0
        for path in paths:
            assert find_checkpoint(path).checkpoint.location == path
            shown = CliRunner().invoke(main, ["savepoint", "show", path])
            assert shown.exit_code == 0
        assert "needs classes of the job" in shown.output
        assert CliRunner().invoke(main, ["savepoint", "dispose", paths[1]]).exit_code == 0
        assert not Path(paths[1]).exists()
        assert Point.rebuilt == 0


@pytest.mark.parametrize("kind", ["savepoint", "checkpoint"])
def test_operator_state_is_rebuilt_only_if_that_is_wanted(
    env: StreamExecutionEnvironment, kind: str
) -> None:
    harness = harness_of(_keeping)
    path = harness.savepoint() if kind == "savepoint" else harness.checkpoint()
    reader = SavepointReader.read(env, path)
    reads = [
        partial(reader.read_list_state_as_arrow, "points", "points"),
        partial(reader.read_broadcast_state_as_arrow, "rules", "rules"),
    ]
    for read in reads:
        Point.rebuilt = 0
        with pytest.raises(ForeignClassError, match=r"Point.*allow_pickle=True"):
            read()
        assert Point.rebuilt == 0
        values = read(allow_pickle=True).column("value").to_pylist()
        assert Point.rebuilt == len(values) > 0
        assert all(value.startswith("Point(") for value in values)
