"""Serves REST with demo jobs that need no Spark, for the development of clients and dashboards.

    python -m tests.rest.serve --port 8081 --dashboard path/to/built/files

The jobs run on the slots of the test harness, in threads of this process.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

from firesteel.common.configuration import Configuration
from firesteel.common.time import Time
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.rest.server import RestServer
from tests.rest.jobs import checkpointed, start


class Position(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value)


def slow(value):
    time.sleep(0.001)
    return (value % 10, 1)


def windows(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Position())
    numbers = env.from_source(NumberSequenceSource(0, 10**9), strategy, "numbers")
    pairs = numbers.rebalance().map(slow).name("slow map")
    windowed = pairs.key_by(lambda pair: pair[0]).window(
        TumblingEventTimeWindows.of(Time.milliseconds(500))
    )
    windowed.reduce(lambda a, b: (a[0], a[1] + b[1])).name("count").print().name("print")


def failing(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_source(
        NumberSequenceSource(0, 10**9), WatermarkStrategy.no_watermarks(), "numbers"
    )
    numbers.map(lambda value: 1 // (value - 5000)).name("divide").print()


def finished(env: StreamExecutionEnvironment) -> None:
    env.from_collection(list(range(100))).map(lambda value: value + 1).print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", default="8081")
    parser.add_argument("--dashboard", type=Path, default=None)
    arguments = parser.parse_args()
    dispatcher = Dispatcher(
        Configuration.from_dict({"rest.port": arguments.port, "web.history": "20"})
    )
    settings = checkpointed(Path(tempfile.mkdtemp()))
    settings["execution__checkpointing__interval"] = "3 s"
    start(dispatcher, windows, "windows over a slow map", **settings)
    start(dispatcher, failing, "fails", restart_strategy__type="none")
    start(dispatcher, finished, "finishes")
    with RestServer(dispatcher, dashboard=arguments.dashboard) as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
