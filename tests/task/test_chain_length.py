"""Chains with more operators than Python's stack has room for."""

from firesteel.common import WatermarkStrategy
from firesteel.datastream import ProcessFunction
from firesteel.testing import JobHarness


class AddOne(ProcessFunction):
    def process_element(self, value, ctx):
        yield value + 1


def test_records_and_watermarks_go_through_five_hundred_chained_operators():
    def program(env):
        env.set_parallelism(1)
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        stream = env.from_collection([1, 2]).assign_timestamps_and_watermarks(strategy)
        for _ in range(500):
            stream = stream.process(AddOne())
        return stream

    harness = JobHarness(program)
    harness.run()
    assert sorted(harness.collected) == [501, 502]
