"""Keyed state is available where every record has a key, and refused elsewhere."""

import pytest

from firesteel.common import Types
from firesteel.datastream import CoProcessFunction, MapFunction
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import UserFunctionError
from firesteel.testing import JobHarness


class Counting(MapFunction, CoProcessFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

    def map(self, value):
        self.seen.update((self.seen.value() or 0) + 1)
        return value, self.seen.value()

    def process_element1(self, value, ctx):
        yield self.map(value)

    def process_element2(self, value, ctx):
        yield self.map(value)


def keyed(env, values):
    return env.from_collection(values).key_by(lambda value: value)


PARTLY_KEYED = {
    "connect, first": lambda env: keyed(env, [1, 2]).connect(env.from_collection([7])),
    "connect, second": lambda env: env.from_collection([7]).connect(keyed(env, [1, 2])),
    "connect, broadcast without state": lambda env: keyed(env, [1, 2]).connect(
        env.from_collection([7]).broadcast()
    ),
}


@pytest.mark.parametrize("connect", PARTLY_KEYED.values(), ids=PARTLY_KEYED)
def test_connected_streams_have_keyed_state_only_if_both_are_keyed(connect):
    with pytest.raises(UserFunctionError, match="can only be used on a keyed stream"):
        JobHarness(lambda env: connect(env).process(Counting())).run()


def test_a_union_with_a_stream_without_keys_has_no_keyed_state():
    with pytest.raises(UserFunctionError, match="can only be used on a keyed stream"):
        JobHarness(
            lambda env: keyed(env, [1, 1, 2]).union(env.from_collection([7])).map(Counting())
        ).run()


def test_two_keyed_streams_share_the_state_of_a_key():
    harness = JobHarness(
        lambda env: keyed(env, [1, 2]).connect(keyed(env, [1])).process(Counting())
    )
    harness.run()
    assert sorted(harness.collected) == [(1, 1), (1, 2), (2, 1)]
