"""Nexmark on Firesteel: ``python -m benchmarks.nexmark.peers.firesteel [backend]``."""

import sys

from benchmarks.nexmark.events import read_events
from benchmarks.nexmark.peers.turns import take_turns
from benchmarks.nexmark.programs import program
from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import SinkFunction

PARALLELISM = 2


class BlackHole(SinkFunction):
    def invoke(self, value: object, context: SinkFunction.Context) -> None:
        pass


def run(query: str, directory: str) -> None:
    configuration = Configuration()
    if len(sys.argv) > 1:
        configuration.set_string("state.backend.type", sys.argv[1])
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(PARALLELISM)
    program(query).query(read_events(env, directory)).add_sink(BlackHole())
    env.execute(query)


if __name__ == "__main__":
    take_turns(run)
