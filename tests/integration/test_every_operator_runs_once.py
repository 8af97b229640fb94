"""A job of any shape is one query, and every operator sees every record exactly once."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.functions import MapFunction, RuntimeContext, SinkFunction

RECORDS = 300


class Counting(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._seen = runtime_context.get_metrics_group().counter("seen")

    def map(self, value: int) -> int:
        self._seen.inc()
        return value


class CountingSink(SinkFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self._seen = runtime_context.get_metrics_group().counter("seen")

    def invoke(self, value: int, context: SinkFunction.Context) -> None:
        self._seen.inc()


def test_three_sources_four_branches_a_self_union_and_five_sinks_are_one_query(
    env: StreamExecutionEnvironment,
) -> None:
    sources = [
        env.from_source(
            NumberSequenceSource(start, start + RECORDS - 1),
            WatermarkStrategy.no_watermarks(),
            f"source {start}",
        )
        for start in (0, 1000, 2000)
    ]
    merged = sources[0].union(sources[1], sources[2]).map(Counting()).name("merged")
    branches = {
        "one": merged.map(Counting()).name("one"),
        "two": merged.rebalance().map(Counting()).name("two"),
        "three": merged.key_by(lambda x: x % 7).map(Counting()).name("three"),
        "four": merged.filter(lambda x: x % 2 == 0).map(Counting()).name("four"),
    }
    doubled = branches["two"].union(branches["two"]).map(Counting()).name("doubled")
    for name, stream in branches.items():
        stream.add_sink(CountingSink()).name(f"sink {name}")
    doubled.add_sink(CountingSink()).name("sink doubled")

    client = env.execute_async("shapes")
    end = client.get_job_execution_result()
    job: Any = client._control
    session = job._runner._executor.session
    queries = set()
    while not end.done():
        queries |= {query.runId for query in session.streams.active}
        time.sleep(0.02)
    assert len(queries) == 1

    accumulators = end.result().get_all_accumulator_results()
    everything = 3 * RECORDS
    expected = {
        "merged": everything,
        "one": everything,
        "two": everything,
        "three": everything,
        "four": everything // 2,
        "doubled": 2 * everything,
    }
    counted = {name.removesuffix(".seen"): count for name, count in accumulators.items()}
    assert counted == {
        **expected,
        **{f"Sink: sink {name}": expected[name] for name in (*branches, "doubled")},
    }


def test_a_union_of_a_stream_with_itself_gives_each_record_twice(
    env: StreamExecutionEnvironment,
) -> None:
    stream = env.from_collection([1, 2, 3]).map(lambda x: x * 10)
    with stream.union(stream).execute_and_collect() as results:
        assert Counter(results) == Counter({10: 2, 20: 2, 30: 2})
