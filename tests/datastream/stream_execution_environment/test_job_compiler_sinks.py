"""A warning for jobs with transactions that have neither an end nor checkpoints."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.datastream import TwoPhaseCommitSinkFunction
from firesteel.graph.operator_specs import TwoPhaseCommitSinkSpec
from firesteel.testing import ScriptedSource


class Transactional(TwoPhaseCommitSinkFunction[Any, Any, Any]):
    def begin_transaction(self) -> Any: ...
    def invoke(  # type: ignore[override]  # Flink's overload of the name
        self, transaction: Any, value: Any, context: Any
    ) -> None: ...
    def pre_commit(self, transaction: Any) -> None: ...
    def commit(self, transaction: Any) -> None: ...
    def abort(self, transaction: Any) -> None: ...


@pytest.mark.parametrize(
    ("bounded", "interval", "warns"),
    [(False, None, True), (True, None, False), (False, "10 s", False)],
)
def test_a_warning_says_that_nothing_will_become_visible(env, caplog, bounded, interval, warns):
    if interval is not None:
        settings = Configuration()
        settings.set_string("execution.checkpointing.interval", interval)
        env._configuration.add_all(settings)
    source = ScriptedSource([1], bounded=bounded)
    env.from_source(source, None, "numbers").add_sink(Transactional()).name("ledger")
    assert env.get_execution_plan()
    assert "visible" not in caplog.text
    env.execute()
    messages = [record.getMessage() for record in caplog.records if "visible" in record.message]
    assert len(messages) == warns
    assert all("'Sink: ledger'" in message for message in messages)


def test_add_sink_takes_it(env, node):
    env.from_sequence(1, 2).add_sink(Transactional()).name("ledger")
    assert isinstance(node("Sink: ledger").spec, TwoPhaseCommitSinkSpec)
