"""Transactions of Kafka, seen and ended from outside the producer that began them."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from firesteel.connectors.kafka.errors import (
    KafkaAuthenticationError,
    KafkaAuthorizationError,
    KafkaUnreachableError,
    TransactionLostError,
)
from firesteel.connectors.kafka.wire import Broker, Reader, Writer, addresses

__all__ = [
    "KafkaTransactions",
    "Transaction",
    "TransactionalIds",
    "id_stem",
    "now_number",
]

_T = TypeVar("_T")

_METADATA, _FIND_COORDINATOR, _INIT_PRODUCER_ID, _END_TXN = 3, 10, 22, 26
_DESCRIBE_TRANSACTIONS, _LIST_TRANSACTIONS = 65, 66
_TRANSACTION_KEY = 1

# The coordinator is loading, not available, elsewhere, or still busy with the last request.
_RETRIED = {14, 15, 16, 51}
_AUTHORIZATION_FAILED = {29, 31, 53}
_UNKNOWN_ID = 105
_PAUSE_SECONDS = 0.05
_ANSWER_SECONDS = 10.0

_COMMITTED_STATES = ("PrepareCommit", "CompleteCommit")
_QUIET_STATES = ("Empty", "CompleteAbort", "Dead")
# The ids of a subtask that may belong to a writer that is still alive. Kafka forgets older ones
# after transactional.id.expiration.ms.
_MOST_WRITERS = 32


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction as its coordinator describes it."""

    id: str
    state: str
    producer_id: int
    epoch: int


class TransactionalIds:
    """The transactional ids of one writer. Chooses the id of each new transaction.

    A committable names a transaction by its id, its producer id and its epoch. A new transaction
    with the same id has a new epoch, and the committable could not be committed again. An id is
    therefore free only after a later checkpoint, which does not contain it, is complete. Ids in a
    savepoint are never used again.

    No writer uses the ids of a different one, which may still be alive: a producer that begins with
    an id makes all earlier ones of this id unable to commit. Ids end with the time at which their
    writer was created, and with its next number.
    """

    def __init__(self, prefix: str, subtask: int) -> None:
        """Create the ids of a writer.

        Args:
            prefix: The prefix of all ids of the sink.
            subtask: The number of the subtask.
        """
        self._stem = id_stem(prefix, subtask)
        self._free: list[str] = []
        self._never: set[str] = set()
        self._next = now_number()
        #: All ids that this writer has used.
        self.used: set[str] = set()
        self._prepared: set[str] = set()
        self._committed: set[str] = set()
        # The prepared ids that each unfinished checkpoint or savepoint contains.
        self._contained: dict[int, set[str]] = {}

    def take(self) -> str:
        """Return an id for a new transaction."""
        if self._free:
            return self._free.pop()
        name = f"{self._stem}{self._next}"
        self._next += 1
        self.used.add(name)
        return name

    def prepared(self, name: str) -> None:
        """Note that the transaction of an id is part of the next checkpoint."""
        self._prepared.add(name)

    def is_prepared(self, name: str) -> bool:
        """Return True if the transaction of an id may not be committed yet."""
        return name in self._prepared

    def snapshot(self, checkpoint_id: int) -> None:
        """Note that a checkpoint or a savepoint contains everything that is prepared."""
        self._contained[checkpoint_id] = set(self._prepared)

    def completed(self, checkpoint_id: int) -> None:
        """Note that a checkpoint is complete, and that its transactions are committed."""
        contained = self._contained.pop(checkpoint_id, None)
        if contained is None:
            return
        for earlier in [number for number in self._contained if number < checkpoint_id]:
            # Neither complete nor aborted: it is a savepoint, or was complete at the same time.
            self._never |= self._contained.pop(earlier)
        pending = set().union(*self._contained.values())
        free = self._committed - contained - self._never - pending
        self._free += sorted(free)
        self._committed = (self._committed | contained) - free - self._never
        self._prepared -= contained

    def aborted(self, checkpoint_id: int) -> None:
        """Note that a checkpoint will never be complete. The next one contains its transactions."""
        self._contained.pop(checkpoint_id, None)


def id_stem(prefix: str, subtask: int) -> str:
    return f"{prefix}-{subtask}-"


def now_number() -> int:
    """Return a number for the end of an id, which grows with time."""
    return time.time_ns() // 1000


class KafkaTransactions:
    """Requests about transactions, to the brokers that coordinate them."""

    def __init__(self, properties: Mapping[str, str], timeout: float) -> None:
        """Create a client. It connects at the first request.

        Args:
            properties: Properties of librdkafka.
            timeout: The longest time for a request with all its retries, in seconds.
        """
        self._properties = properties
        self._servers = properties["bootstrap.servers"]
        self._timeout = timeout
        self._brokers: dict[tuple[str, int], Broker] = {}
        self._coordinators: dict[str, tuple[str, int]] = {}

    def close(self) -> None:
        for broker in self._brokers.values():
            broker.close()
        self._brokers.clear()

    def describe(self, name: str) -> Transaction | None:
        """Return the newest transaction of an id, or None if Kafka does not know the id."""

        def ask(broker: Broker) -> tuple[int, Transaction]:
            body = Writer().texts([name]).end()
            answer = broker.request(_DESCRIBE_TRANSACTIONS, 0, body)
            answer.unpack("i")
            [(error, transaction)] = answer.array(lambda: _described(answer))
            return error, transaction

        error, transaction = self._ask_coordinator(
            name, f"asked about the transaction {name}", ask, accepted={_UNKNOWN_ID}
        )
        return None if error else transaction

    def matching(self, pattern: re.Pattern[str]) -> list[tuple[str, str]]:
        """Return the ids that match, with their states, from all brokers."""
        body = Writer().length(0).length(0).end()

        def ask(address: tuple[str, int]) -> tuple[int, list[tuple[str, str]]]:
            answer = self._broker(address).request(_LIST_TRANSACTIONS, 0, body)
            _, error = answer.unpack("ih")
            answer.array(answer.text)
            return error, answer.array(lambda: _listed(answer))

        what = "asked for the list of transactions"
        found = [
            one
            for address in self._retry(what, self._all_brokers)[1]
            for one in self._retry(what, lambda: ask(address))[1]  # noqa: B023 - called at once
        ]
        return [(name, state) for name, state in found if pattern.fullmatch(name)]

    def commit(self, name: str, producer_id: int, epoch: int) -> None:
        """Commit a transaction. A second commit has no effect.

        Raises TransactionLostError if it was aborted, or if the id has a newer transaction.
        """
        body = Writer().text(name).pack("qhb", producer_id, epoch, True).end()

        def ask(broker: Broker) -> tuple[int, None]:
            answer = broker.request(_END_TXN, 3, body)
            _, error = answer.unpack("ih")
            return error, None

        self._ask_coordinator(name, f"committed the transaction {name}", ask)

    def fence(self, name: str) -> None:
        """Abort the transaction of an id, and make its producer unable to write."""
        body = Writer().text(name).pack("iqh", 60_000, -1, -1).end()

        def ask(broker: Broker) -> tuple[int, None]:
            answer = broker.request(_INIT_PRODUCER_ID, 4, body)
            _, error = answer.unpack("ih")
            return error, None

        self._ask_coordinator(name, f"aborted the transaction {name}", ask)

    def fence_all(
        self,
        pattern: re.Pattern[str],
        kept: Collection[str] = (),
        created_before: int | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Abort the transactions of ids that match, except committed ones.

        Writers that have no transaction yet become unable to begin one, if they are among the
        newest of their subtask.

        Args:
            pattern: Matches whole ids.
            kept: Ids to leave alone.
            created_before: Leave alone ids with this number or a greater one.
            check: Is called once the ids are known, and raises an error if they must stay.
        """
        by_stem: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
        for name, state in self.matching(pattern):
            stem, _, digits = name.rpartition("-")
            by_stem[stem].append((int(digits), name, state))
        check()
        for found in by_stem.values():
            found.sort(reverse=True)
            for place, (number, name, state) in enumerate(found):
                is_spared = name in kept or state in _COMMITTED_STATES
                is_young = created_before is not None and number >= created_before
                is_forgotten = state in _QUIET_STATES and place >= _MOST_WRITERS
                if not (is_spared or is_young or is_forgotten):
                    self.fence(name)

    # Brokers

    def _ask_coordinator(
        self,
        name: str,
        what: str,
        ask: Callable[[Broker], tuple[int, _T]],
        accepted: Collection[int] = (),
    ) -> tuple[int, _T]:
        def once() -> tuple[int, _T]:
            address = self._coordinators.get(name)
            if address is None:
                error, address = self._find_coordinator(name)
                if error:
                    return error, None  # type: ignore[return-value]  # not read with an error
                self._coordinators[name] = address
            try:
                error, answer = ask(self._broker(address))
            except OSError:
                self._coordinators.pop(name, None)
                raise
            if error in _RETRIED:
                self._coordinators.pop(name, None)
            return error, answer

        return self._retry(what, once, accepted)

    def _find_coordinator(self, name: str) -> tuple[int, tuple[str, int]]:
        body = Writer().text(name).pack("b", _TRANSACTION_KEY).end()
        answer = self._any_broker().request(_FIND_COORDINATOR, 3, body)
        _, error = answer.unpack("ih")
        answer.text()
        answer.unpack("i")
        return error, (answer.text(), answer.unpack("i"))

    def _all_brokers(self) -> tuple[int, list[tuple[str, int]]]:
        answer = self._any_broker().request(
            _METADATA, 9, Writer().length(0).pack("bbb", 0, 0, 0).end()
        )
        answer.unpack("i")
        return 0, answer.array(lambda: _broker_address(answer))

    def _any_broker(self) -> Broker:
        """Return a connection to one of the first brokers that answers."""
        failure: OSError | None = None
        for address in [*self._brokers, *addresses(self._servers)]:
            try:
                return self._broker(address)
            except KafkaAuthenticationError:
                raise
            except OSError as error:
                failure = error
        raise failure or ConnectionError("no broker")

    def _broker(self, address: tuple[str, int]) -> Broker:
        broker = self._brokers.get(address)
        if broker is None:
            timeout = min(_ANSWER_SECONDS, self._timeout)
            broker = self._brokers[address] = Broker(address, self._properties, timeout)
        return broker

    def _retry(
        self, what: str, once: Callable[[], tuple[int, _T]], accepted: Collection[int] = ()
    ) -> tuple[int, _T]:
        """Ask until there is an answer that is final, in new connections if necessary."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                error, answer = once()
            except KafkaAuthenticationError:
                raise
            except (OSError, EOFError) as caught:
                reason = str(caught)
                self.close()
            else:
                if not error or error in accepted:
                    return error, answer
                if error not in _RETRIED:
                    raise _explained(error, what, self._servers)
                reason = f"error {error}"
            if time.monotonic() >= deadline:
                raise KafkaUnreachableError(self._servers, what, reason)
            time.sleep(_PAUSE_SECONDS)


def _described(answer: Reader) -> tuple[int, Transaction]:
    error = answer.unpack("h")
    name, state = answer.text(), answer.text()
    _, _, producer_id, epoch = answer.unpack("iqqh")
    answer.array(lambda: _skip_topic(answer))
    answer.tags()
    return error, Transaction(name, state, producer_id, epoch)


def _skip_topic(answer: Reader) -> None:
    answer.text()
    answer.array(lambda: answer.unpack("i"))
    answer.tags()


def _listed(answer: Reader) -> tuple[str, str]:
    name = answer.text()
    answer.unpack("q")
    state = answer.text()
    answer.tags()
    return name, state


def _broker_address(answer: Reader) -> tuple[str, int]:
    answer.unpack("i")
    host, port = answer.text(), answer.unpack("i")
    answer.text()
    answer.tags()
    return host, port


def _explained(error: int, what: str, servers: str) -> Exception:
    if error in _AUTHORIZATION_FAILED:
        return KafkaAuthorizationError(servers, what)
    return TransactionLostError(what, error)
