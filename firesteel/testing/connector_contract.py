"""check_source and check_sink: a test kit for those who write connectors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from firesteel.common.columns import records_in
from firesteel.common.configuration import Configuration
from firesteel.connectors.base import (
    ReaderContext,
    Sink,
    Source,
    SourceReader,
    SourceSplit,
    WriteContext,
    WriterContext,
)
from firesteel.errors import FiresteelError, shorten
from firesteel.stability import public_evolving
from firesteel.testing.harness_slots import Fault
from firesteel.testing.job_harness import JobHarness
from firesteel.testing.list_sink import ListSink
from firesteel.usercode import pickling

__all__ = ["ContractViolationError", "check_sink", "check_source"]

_MOST_READS = 100_000
_STEPS = 20
_RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1000",
    "restart-strategy.fixed-delay.delay": "1 s",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
}


@public_evolving
class ContractViolationError(FiresteelError, AssertionError):
    """A connector does not keep its contract. Not in PyFlink.

    >>> from firesteel.testing import ContractViolationError, check_source
    >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
    >>> check_source(NumberSequenceSource(1, 3), [1, 2])
    Traceback (most recent call last):
    firesteel.testing.connector_contract.ContractViolationError: NumberSequenceSource(1, 3): ...
    """

    def __init__(self, connector: object, problem: str) -> None:
        super().__init__(f"{shorten(connector)}: {problem}")
        self.problem = problem


@public_evolving
def check_source(
    source: Source, expected: Iterable[Any], *, seeds: Iterable[int] = range(5)
) -> None:
    """Check a bounded source: it is killed, restarted and rescaled. Not in PyFlink.

    The kit checks these rules:

    - The source can be pickled. Splits, positions and the state of the enumerator are JSON.
    - ``read(limit)`` returns at most ``limit`` records.
    - A reader that starts at a position returns the same records in the same order as the reader
      that was lost.
    - A job whose tasks, driver and parallelism change gets each record once.

    Args:
        source: The source.
        expected: All its records, in any order.
        seeds: The seeds of random histories.

    Raises:
        ContractViolationError: The source breaks a rule.

    >>> from firesteel.testing import check_source
    >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
    >>> check_source(NumberSequenceSource(1, 30), range(1, 31), seeds=[1])
    """
    wanted = Counter(map(_hashable, expected))
    for seed in seeds:
        _check_readers(source, wanted, seed)
        sink = ListSink()

        def program(env: Any, sink: Sink = sink) -> None:
            env.from_source(source, None, "source").sink_to(sink)

        _History(program, seed).run()
        _compare(source, wanted, sink.values(), f"a job with restarts (seed {seed})")


@public_evolving
def check_sink(
    create: Callable[[], tuple[Sink, Callable[[], Iterable[Any]]]],
    records: Sequence[Any],
    *,
    exactly_once: bool = True,
    seeds: Iterable[int] = range(5),
) -> None:
    """Check a sink: it is killed, restarted and rescaled. Not in PyFlink.

    The kit checks these rules:

    - The sink can be pickled. Committables and the state of writers are JSON.
    - Records are not visible before their commit, and a commit that is repeated has no effect.
    - ``recover`` makes the records of the checkpoint visible, and no others. It may be repeated.
    - After a job whose tasks, driver and parallelism change, each record is visible once.

    Args:
        create: Creates a sink for a new and empty target, and a function that returns the visible
            records.
        records: Records to write. All of them are different.
        exactly_once: False allows records that are visible early or several times.
        seeds: The seeds of random histories.

    Raises:
        ContractViolationError: The sink breaks a rule.

    >>> from firesteel.testing import ListSink, check_sink
    >>> def create():
    ...     sink = ListSink()
    ...     return sink, sink.values
    >>> check_sink(create, list(range(30)), seeds=[1])
    """
    if exactly_once:
        _check_commits(create, records)
    for seed in seeds:
        sink, visible = create()
        parallelism = 1 + seed % 3

        def program(env: Any, sink: Sink = sink) -> None:
            env.from_collection(list(records)).rebalance().sink_to(sink)

        _History(program, seed, parallelism).run()
        found = list(visible())
        if not exactly_once:
            found = list(dict.fromkeys(map(_hashable, found)))
        wanted = Counter(map(_hashable, records))
        _compare(sink, wanted, found, f"a job with restarts (seed {seed})")


# Sources


def _check_readers(source: Source, wanted: Counter[Any], seed: int) -> None:
    """Read all splits in a few readers, each of which is lost and restored again and again."""
    random = Random(seed)
    shipped: Source = _pickled(source, source)
    parallelism = random.randint(1, 3)
    enumerator = source.create_enumerator(parallelism)
    names: list[str] = []
    found: list[Any] = []
    for _ in range(_MOST_READS):
        splits = list(enumerator.discover_splits())
        names += [split.split_id for split in splits]
        if len(set(names)) != len(names):
            raise ContractViolationError(source, f"names of splits are not unique: {names}")
        for subtask in range(parallelism):
            context = ReaderContext(subtask, parallelism)
            own = _persisted(source, splits[subtask::parallelism])
            found += _read_with_losses(source, lambda: shipped.create_reader(context), own, random)  # noqa: B023 - called at once
        if enumerator.is_complete():
            break
        enumerator.all_splits_read()
    _through_json(source, "the state of the enumerator", enumerator.snapshot_state())
    if source.create_enumerator(parallelism, enumerator.snapshot_state()).discover_splits():
        raise ContractViolationError(
            source, "an enumerator that is restored finds splits again that it had found before"
        )
    enumerator.close()
    _compare(source, wanted, found, f"readers that were restored (seed {seed})")


def _read_with_losses(
    source: Source,
    create: Callable[[], SourceReader],
    splits: list[SourceSplit],
    random: Random,
) -> list[Any]:
    reader = create()
    reader.add_splits(splits)
    records: list[Any] = []
    for _ in range(_MOST_READS):
        unfinished = _persisted(source, reader.snapshot_splits())
        if not unfinished:
            break
        if random.random() < 0.3:
            lost = _read(source, reader, random.randint(1, 5))
            split = reader.current_split() if lost else None
            reader.close()
            reader = create()
            reader.add_splits(unfinished)
            # The order of records is fixed within a split, and not between splits.
            again: list[Any] = []
            for _ in range(_MOST_READS):
                if len(again) >= len(lost) or not reader.snapshot_splits():
                    break
                found = _read(source, reader, len(lost) - len(again))
                records += found
                if not found or reader.current_split() == split:
                    again += found
            if list(map(_hashable, again)) != list(map(_hashable, lost)):
                raise ContractViolationError(
                    source,
                    f"a restored reader returned {shorten(again)} where the lost one had returned "
                    f"{shorten(lost)}; the splits were {shorten(unfinished)}",
                )
        else:
            records += _read(source, reader, random.randint(1, 7))
    else:
        raise ContractViolationError(source, f"it has not ended after {_MOST_READS} reads")
    reader.close()
    return records


def _read(source: Source, reader: SourceReader, limit: int) -> list[Any]:
    records = list(records_in(reader.read(limit), source.get_produced_type()))
    if len(records) > limit:
        raise ContractViolationError(source, f"read({limit}) returned {len(records)} records")
    stamps = reader.timestamps()
    if records and stamps is not None and len(stamps) != len(records):
        raise ContractViolationError(
            source, f"there are {len(stamps)} timestamps for {len(records)} records"
        )
    return records


def _persisted(source: Source, splits: Sequence[SourceSplit]) -> list[SourceSplit]:
    """Return splits as a checkpoint restores them."""
    return [
        SourceSplit(
            split.split_id,
            _through_json(source, "the properties of a split", split.properties),
            _through_json(source, "the position of a split", split.position),
        )
        for split in splits
    ]


# Sinks


def _check_commits(
    create: Callable[[], tuple[Sink, Callable[[], Iterable[Any]]]], records: Sequence[Any]
) -> None:
    sink, visible = create()
    sink = _pickled(sink, sink)
    third = max(1, len(records) // 3)
    first, second, third_part = records[:third], records[third : 2 * third], records[2 * third :]
    sink.recover([])
    context = WriterContext(0, 2, "contract")
    writer = sink.create_writer(context)
    writer.write_batch(list(first), None, WriteContext())
    writer.flush(end_of_input=False)
    writer.begin_checkpoint(1)
    committables = _through_json(sink, "a committable", writer.prepare_commit(end_of_input=False))
    state = _through_json(sink, "the state of a writer", writer.snapshot_state())
    # This work is lost with the writer: no checkpoint contains it.
    writer.write_batch(list(second), None, WriteContext())
    writer.flush(end_of_input=False)
    lost = writer.prepare_commit(end_of_input=False)
    _compare(sink, Counter(), visible(), "writing without a commit")
    writer.close()
    _compare(sink, Counter(), visible(), "closing a writer without a commit")
    if first and not committables:
        raise ContractViolationError(
            sink, "prepare_commit returned no committables for records that are not visible"
        )
    wanted = Counter(map(_hashable, first))
    for turn in ("a commit", "a repeated commit"):
        _commit(sink, committables)
        _compare(sink, wanted, visible(), turn)
    if lost:
        for turn in ("recover()", "a repeated recover()"):
            sink.recover(committables)
            _compare(sink, wanted, visible(), turn)
    writer = sink.create_writer(context, state)
    writer.write_batch(list(third_part), None, WriteContext())
    writer.flush(end_of_input=True)
    last = writer.prepare_commit(end_of_input=True)
    writer.close()
    _commit(sink, _through_json(sink, "a committable", last))
    wanted += Counter(map(_hashable, third_part))
    _compare(sink, wanted, visible(), "a commit of a restored writer")


def _commit(sink: Sink, committables: Sequence[Any]) -> None:
    committer = sink.create_committer()
    if committer is None:
        raise ContractViolationError(sink, "a sink that writes exactly once needs a committer")
    committer.commit(committables)
    committer.close()


# Jobs


class _History:
    """A job to which something happens at random until it ends."""

    def __init__(
        self,
        program: Callable[[Any], None],
        seed: int,
        parallelism: int = 2,
    ) -> None:
        self._program = program
        self._random = Random(seed)
        self._arguments: dict[str, Any] = {
            "parallelism": parallelism,
            "records_per_epoch": (2, 1, 3),
            "configuration": Configuration.from_dict(_RESTARTS),
            "checkpoint_every": 0,
            "seed": seed,
        }
        self._origin: str | None = None
        self._harness = JobHarness(program, **self._arguments)

    def run(self) -> None:
        actions = [
            *(self._epoch, self._epoch, self._checkpoint, self._checkpoint),
            *(self._faults, self._crash, self._kill, self._rescale),
        ]
        for _ in range(_STEPS):
            if self._harness.status.is_terminal_state():
                break
            self._random.choice(actions)()
        self._harness.run()

    def _epoch(self) -> None:
        self._harness.run_epoch()

    def _checkpoint(self) -> None:
        self._harness.request_checkpoint()
        self._harness.run_epoch()

    def _faults(self) -> None:
        places = self._harness.places()
        chosen = self._random.sample(places, self._random.randint(1, len(places)))
        self._harness.run_epoch({place: self._random.choice([*Fault]) for place in chosen})

    def _crash(self) -> None:
        self._harness.crash()

    def _kill(self) -> None:
        self._harness.kill()
        own = self._harness.checkpoint_directory()
        if any(own.glob("chk-*/_metadata")):
            self._origin = str(own.parent)
        if self._origin is None:
            self._harness = JobHarness(self._program, **self._arguments)
        else:
            self._harness = self._harness.resume(self._origin)

    def _rescale(self) -> None:
        try:
            savepoint = self._harness.stop()
        except FiresteelError:
            # The job failed on its way to the savepoint, and restarts.
            return
        self._origin = savepoint
        self._arguments["parallelism"] = self._random.randint(1, 3)
        self._harness = self._harness.resume(
            savepoint,
            parallelism=self._arguments["parallelism"],
            records_per_epoch=self._arguments["records_per_epoch"],
        )


# Comparing


def _compare(connector: object, wanted: Counter[Any], found: Iterable[Any], where: str) -> None:
    count = Counter(map(_hashable, found))
    missing, extra = wanted - count, count - wanted
    if missing:
        raise ContractViolationError(
            connector, f"after {where}, these records are missing: {shorten(dict(missing))}"
        )
    if extra:
        raise ContractViolationError(
            connector, f"after {where}, these records are too many: {shorten(dict(extra))}"
        )


def _hashable(record: Any) -> Any:
    try:
        hash(record)
    except TypeError:
        return repr(record)
    return record


def _pickled(connector: object, value: Any) -> Any:
    try:
        return pickling.loads(pickling.dumps(value))
    except Exception as error:
        raise ContractViolationError(connector, f"it cannot be pickled: {error}") from error


def _through_json(connector: object, what: str, value: Any) -> Any:
    """Return a value as a checkpoint restores it."""
    try:
        restored = json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise ContractViolationError(
            connector, f"{what} is not JSON: {shorten(value)} ({error})"
        ) from None
    return restored
