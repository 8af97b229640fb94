"""bytewax: a cluster of worker processes, one per core, that exchange records like other peers.

With `--parallelism 1` there is one worker, which serializes and exchanges nothing. This gives the
best rate of one core.
"""

import multiprocessing
import socket
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.operators import StatefulBatchLogic
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main, run_main

from benchmarks.cases import (
    Case,
    CountingSink,
    FanOut,
    Function,
    KeyedMap,
    MapFilter,
    Outcome,
    Reduce,
    Sum,
    Union,
    add_second_field,
)
from benchmarks.measure import check_results, parse_arguments, report_versions, run_cases
from benchmarks.peers import bytewax_latency

BATCH_RECORDS = 10_000
_START_SECONDS = 0.5
# Each run takes several seconds, because a cluster always needs a second to end.
RECORDS = {
    "map_filter": 40_000_000,
    "reduce_1k": 3_000_000,
    # The small run, a quarter of this, sees each key once. The rest of the large run repeats keys.
    "reduce_1m": 4_000_000,
    "sum_tuples": 3_000_000,
    "union": 40_000_000,
    "fan_out": 16_000_000,
    "wide_rows": 2_000_000,
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
        invoke = self.invoke
        for item in items:
            invoke(item)


class KeyedPartition(CallingPartition):
    """Removes the keys from pairs. A separate step for this would cost more."""

    def write_batch(self, items: list[Any]) -> None:
        invoke = self.invoke
        for _, item in items:
            invoke(item)


class CallingSink(DynamicSink[Any]):
    def __init__(self, invoke: Any, partition: type[CallingPartition]) -> None:
        self.invoke = invoke
        self.partition = partition

    def build(self, step_id: str, worker_index: int, worker_count: int) -> CallingPartition:
        return self.partition(self.invoke)


def results(flow: Dataflow, case: Case, records: int) -> list[Any]:
    """Return the streams that end in sinks.

    bytewax requires strings as keys. They stay with reduced values.
    """
    if isinstance(case, Union):
        half = records // 2
        first = op.map("make", op.input("first", flow, RangeSource(range(half))), case.make)
        second = op.map(
            "other", op.input("second", flow, RangeSource(range(half, records))), case.other
        )
        return [op.map("then", op.merge("union", first, second), case.then)]
    numbers = op.input("numbers", flow, RangeSource(range(records)))
    if isinstance(case, Reduce):
        return [rolling(numbers, case.key, case.combine)]
    if not isinstance(case, MapFilter | Sum | FanOut | KeyedMap):
        raise TypeError(f"{case.name} is of an unknown shape, {type(case).__name__}")
    made = op.map("make", numbers, case.make)
    match case:
        case MapFilter():
            return [op.filter("filter", made, case.keep)]
        case Sum():
            return [rolling(made, case.key, add_second_field)]
        case FanOut():
            return [
                op.map(f"branch_{index}", made, branch)
                for index, branch in enumerate(case.branches)
            ]
        case KeyedMap():
            # Only stateful steps route by key. A random exchange costs less.
            return [op.map("then", op.redistribute("exchange", made), case.then)]


class Rolling(StatefulBatchLogic[Any, Any, Any]):
    """The state of a key.

    bytewax builds stateful_map on this class, and needs one or two more calls per record.
    """

    def __init__(self, combine: Callable[[Any, Any], Any], state: Any) -> None:
        self.combine = combine
        self.state = state

    def on_batch(self, values: list[Any]) -> tuple[list[Any], bool]:
        combine, state = self.combine, self.state
        results = []
        for value in values:
            state = value if state is None else combine(state, value)
            results.append(state)
        self.state = state
        return results, False

    def snapshot(self) -> Any:
        return self.state


def rolling(stream: Any, key: Function, combine: Callable[[Any, Any], Any]) -> Any:
    """Return a stream of keys and results."""

    def with_keys(values: list[Any]) -> list[tuple[str, Any]]:
        return [(str(key(value)), value) for value in values]

    keyed = op.flat_map_batch("key", stream, with_keys)
    return op.stateful_batch("reduce", keyed, partial(Rolling, combine))


def dataflow(case: Case, records: int, invoke: Any) -> Dataflow:
    flow = Dataflow(case.name)
    partition = KeyedPartition if isinstance(case, Reduce | Sum) else CallingPartition
    for index, stream in enumerate(results(flow, case, records)):
        op.output(f"sink_{index}", stream, CallingSink(invoke, partition))
    return flow


def free_addresses(count: int) -> list[str]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = ["{}:{}".format(*server.getsockname()) for server in sockets]
    for server in sockets:
        server.close()
    return addresses


def run_member(
    case: Case, records: int, addresses: list[str], index: int, checked: bool, outcomes: Any
) -> None:
    outcome = run_worker(
        case, records, partial(cluster_main, addresses=addresses, proc_id=index), checked
    )
    outcomes.put(outcome)


def run_worker(
    case: Case, records: int, execute: Callable[[Dataflow], None], checked: bool
) -> Outcome:
    """Return the results of a worker. A timed run only counts them."""
    outcome, sink = Outcome(), CountingSink()
    execute(dataflow(case, records, outcome.add if checked else sink.invoke))
    return outcome if checked else Outcome(sink.count)


class Bytewax:
    """Runs cases in one worker process per slot. A single worker runs in this process."""

    def __init__(self, parallelism: int) -> None:
        self.parallelism = parallelism

    def run(self, case: Case, records: int) -> float:
        begin = time.perf_counter()
        outcome = self.outcome(case, records, checked=False)
        seconds = time.perf_counter() - begin
        check_results(case, outcome.count, records)
        return seconds

    def run_checked(self, case: Case, records: int) -> Outcome:
        return self.outcome(case, records, checked=True)

    def outcome(self, case: Case, records: int, *, checked: bool) -> Outcome:
        if self.parallelism == 1:
            return run_worker(case, records, run_main, checked)
        addresses = free_addresses(self.parallelism)
        outcomes = multiprocessing.SimpleQueue()  # type: ignore[var-annotated, unused-ignore]
        members = [
            multiprocessing.Process(
                target=run_member, args=(case, records, addresses, index, checked, outcomes)
            )
            for index in range(self.parallelism)
        ]
        for member in members:
            member.start()
            # The next member connects to this one. A member that starts too early retries after a
            # second, which would affect some runs only.
            time.sleep(_START_SECONDS)
        for member in members:
            member.join()
            if member.exitcode != 0:
                raise RuntimeError(f"a worker ended with exit code {member.exitcode}")
        return Outcome().merge(outcomes.get() for _ in members)


def main() -> None:
    arguments = parse_arguments("bytewax")
    report_versions("bytewax")
    peer = Bytewax(arguments.parallelism)
    run_cases(arguments, peer.run, peer.run_checked, records=RECORDS, warm_up=False)
    if "latency" in arguments.options:
        arguments.wait_for_turn("sections")
        bytewax_latency.measure(arguments, free_addresses)


if __name__ == "__main__":
    main()
