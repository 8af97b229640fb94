"""Names that earlier versions wrote into pickles resolve to their present place."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from firesteel.datastream.connectors.kafka import KafkaTopicPartition
from firesteel.datastream.functions import MapFunction
from firesteel.datastream.window import EventTimeTrigger, TaggedUnion
from firesteel.task.operators.two_phase_commit_sink import TransactionState
from firesteel.usercode import pickling


def _global(module: str, name: str) -> bytes:
    """A pickle of a class or function, by its name."""
    return f"c{module}\n{name}\n.".encode()


@pytest.mark.parametrize(
    ("module", "found"),
    [
        ("firesteel.datastream.connectors.kafka.topic_partition", KafkaTopicPartition),
        ("firesteel.datastream.functions.map_function", MapFunction),
        ("firesteel.datastream.window.tagged_union", TaggedUnion),
        ("firesteel.datastream.window.triggers.event_time_trigger", EventTimeTrigger),
        ("firesteel.task.transactions", TransactionState),
    ],
)
def test_a_moved_name(module: str, found: type) -> None:
    assert pickling.loads(_global(module, found.__name__)) is found
    assert pickling.loads(memoryview(_global(module, found.__name__))) is found


def test_moved_and_present_names_in_one_pickle() -> None:
    payload = pickle.dumps([KafkaTopicPartition("topic", 1), Path("path")], protocol=0)
    old = payload.replace(
        b"firesteel.connectors.kafka.topic_partition",
        b"firesteel.datastream.connectors.kafka.topic_partition",
    )
    assert old != payload
    assert pickling.loads(old) == [KafkaTopicPartition("topic", 1), Path("path")]


@pytest.mark.parametrize(
    ("module", "name", "error", "text"),
    [
        ("firesteel.gone.module", "Class", ModuleNotFoundError, "firesteel.gone"),
        ("firesteel.common", "Gone", AttributeError, "Gone"),
        ("module_of_the_user", "Class", ModuleNotFoundError, "module_of_the_user"),
        ("pathlib", "Gone", AttributeError, "Gone"),
    ],
)
def test_a_name_that_is_nowhere(module: str, name: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        pickling.loads(_global(module, name))
