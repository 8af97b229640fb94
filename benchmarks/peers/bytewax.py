"""bytewax: by default a cluster of worker processes, one a core, that exchange records as every other peer does.

With `--parallelism 1` there is one worker, and nothing is serialized or exchanged at all: the rate of one core at its best.
"""

import multiprocessing
import socket
import time
from collections.abc import Iterable
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main, run_main

from benchmarks.cases import (
    Case,
    CountingSink,
    FanOut,
    KeyedMap,
    MapFilter,
    Outcome,
    Reduce,
    Sum,
    Union,
)
from benchmarks.measure import parse_arguments, report_versions, run_cases

BATCH_RECORDS = 10_000
RECORDS = {
    "map_filter": 3_000_000,
    "reduce_1k": 1_000_000,
    "reduce_1m": 1_000_000,
    "sum_tuples": 1_000_000,
    "union": 3_000_000,
    "fan_out": 2_000_000,
    "wide_rows": 400_000,
    "strings_1kb": 600_000,
}


class RangePartition(StatelessSourcePartition[int]):
    def __init__(self, numbers: range) -> None:
        self.numbers = numbers

    def next_batch(self) -> Iterable[int]:
        if not self.numbers:
            raise StopIteration
        batch, self.numbers = self.numbers[:BATCH_RECORDS], self.numbers[BATCH_RECORDS:]
        return list(batch)


class RangeSource(DynamicSource[int]):
    def __init__(self, numbers: range) -> None:
        self.numbers = numbers

    def build(self, step_id: str, worker_index: int, worker_count: int) -> RangePartition:
        size = len(self.numbers)
        begin, end = size * worker_index // worker_count, size * (worker_index + 1) // worker_count
        return RangePartition(self.numbers[begin:end])


class CallingPartition(StatelessSinkPartition[Any]):
    def __init__(self, invoke: Any) -> None:
        self.invoke = invoke

    def write_batch(self, items: list[Any]) -> None:
        for item in items:
            self.invoke(item)


class CallingSink(DynamicSink[Any]):
    def __init__(self, invoke: Any) -> None:
        self.invoke = invoke

    def build(self, step_id: str, worker_index: int, worker_count: int) -> CallingPartition:
        return CallingPartition(self.invoke)


def results(flow: Dataflow, case: Case, records: int) -> list[Any]:
    """The streams that end in sinks. Keys are strings, because bytewax asks for that."""
    if isinstance(case, Union):
        half = records // 2
        first = op.map("make", op.input("first", flow, RangeSource(range(half))), case.make)
        second = op.map(
            "other", op.input("second", flow, RangeSource(range(half, records))), case.other
        )
        return [op.map("then", op.merge("union", first, second), case.then)]
    numbers = op.input("numbers", flow, RangeSource(range(records)))
    if isinstance(case, Reduce):
        return [reduced(numbers, case)]
    if not isinstance(case, MapFilter | Sum | FanOut | KeyedMap):
        raise TypeError(f"{case.name} is of an unknown shape, {type(case).__name__}")
    made = op.map("make", numbers, case.make)
    match case:
        case MapFilter():
            return [op.filter("filter", made, case.keep)]
        case Sum():
            return [summed(made, case)]
        case FanOut():
            return [
                op.map(f"branch_{index}", made, branch)
                for index, branch in enumerate(case.branches)
            ]
        case KeyedMap():
            # Only stateful steps route by key. Records crossing at random cost less than those would.
            return [op.map("then", op.redistribute("exchange", made), case.then)]


def reduced(numbers: Any, case: Reduce) -> Any:
    key, combine = case.key, case.combine

    def step(state: Any, value: Any) -> tuple[Any, Any]:
        result = value if state is None else combine(state, value)
        return result, result

    keyed = op.key_on("key", numbers, lambda value: str(key(value)))
    return op.map("values", op.stateful_map("reduce", keyed, step), value_of)


def summed(made: Any, case: Sum) -> Any:
    key = case.key

    def step(state: Any, row: Any) -> tuple[Any, Any]:
        result = row if state is None else (row[0], state[1] + row[1])
        return result, result

    keyed = op.key_on("key", made, lambda row: str(key(row)))
    return op.map("values", op.stateful_map("sum", keyed, step), value_of)


def value_of(item: tuple[str, Any]) -> Any:
    return item[1]


def dataflow(case: Case, records: int, invoke: Any) -> Dataflow:
    flow = Dataflow(case.name)
    for index, stream in enumerate(results(flow, case, records)):
        op.output(f"sink_{index}", stream, CallingSink(invoke))
    return flow


def free_addresses(count: int) -> list[str]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = ["{}:{}".format(*server.getsockname()) for server in sockets]
    for server in sockets:
        server.close()
    return addresses


def run_member(case: Case, records: int, addresses: list[str], index: int) -> None:
    cluster_main(dataflow(case, records, CountingSink().invoke), addresses, index)


class Bytewax:
    """Runs cases in this process, and in as many others as the parallelism asks for."""

    def __init__(self, parallelism: int) -> None:
        self.parallelism = parallelism

    def run(self, case: Case, records: int) -> float:
        begin = time.perf_counter()
        if self.parallelism == 1:
            run_main(dataflow(case, records, CountingSink().invoke))
        else:
            self.run_cluster(case, records)
        return time.perf_counter() - begin

    def run_cluster(self, case: Case, records: int) -> None:
        addresses = free_addresses(self.parallelism)
        members = [
            multiprocessing.Process(target=run_member, args=(case, records, addresses, index))
            for index in range(self.parallelism)
        ]
        for member in members:
            member.start()
        for member in members:
            member.join()
            if member.exitcode != 0:
                raise RuntimeError(f"a worker ended with exit code {member.exitcode}")

    def run_checked(self, case: Case, records: int) -> Outcome:
        outcome = Outcome()
        run_main(dataflow(case, records, outcome.add))
        return outcome


def main() -> None:
    arguments = parse_arguments("bytewax")
    report_versions("bytewax")
    peer = Bytewax(arguments.parallelism)
    run_cases(arguments, peer.run, peer.run_checked, records=RECORDS)


if __name__ == "__main__":
    main()
