"""Election and entries in ZooKeeper.

The node ``term`` of a group has the address of the leader, and its version is the number of the
term. Every write is a transaction that also checks this version, so ZooKeeper itself refuses the
writes of a leader that was replaced.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from firesteel.checkpoint.storage.storage import Storage, StorageError, open_storage
from firesteel.errors import LeadershipLostError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.leader.fence import Fence
from firesteel.leader.services import (
    KINDS,
    DifferentVersionError,
    HighAvailabilityError,
    Leader,
    Listener,
    Member,
    Notifications,
    now,
)

try:
    from kazoo.client import KazooClient, KazooState
    from kazoo.exceptions import (
        BadVersionError,
        ConnectionLoss,
        KazooException,
        NodeExistsError,
        NoNodeError,
        OperationTimeoutError,
        RolledBackError,
        RuntimeInconsistency,
        SessionExpiredError,
        SessionMovedError,
    )
    from kazoo.handlers.threading import KazooTimeoutError
    from kazoo.retry import KazooRetry
except ImportError:
    _MISSING = True
else:
    _MISSING = False
    # The call has no answer, or a connection that the client has left answers. It can be repeated.
    _UNANSWERED = (ConnectionLoss, OperationTimeoutError, SessionExpiredError, SessionMovedError)
    # Answers about the node of a call, which its caller understands.
    _ABOUT_NODES = (BadVersionError, NodeExistsError, NoNodeError)

_log = logging.getLogger("firesteel")

T = TypeVar("T")

_FENCES = "fence"
_RETRY_SECONDS = 0.5
_TRIES = 3


def require_client() -> None:
    if _MISSING:
        raise HighAvailabilityError(
            "high-availability.type is zookeeper, which needs kazoo: pip install "
            "'firesteel[zookeeper]'."
        )


class ZooKeeper:
    """A group of masters in ZooKeeper.

    Args:
        quorum: The servers.
        path: The node of the group.
        storage: The directory of the group.
        options: The access to object stores.
        session_seconds: The time after which a silent leader is replaced.
        call_seconds: The time limit of a call.
        tolerates_suspension: Lead on without a connection, until the session ends.
    """

    def __init__(
        self,
        quorum: str,
        path: str,
        storage: str,
        options: FileSystemOptions,
        *,
        session_seconds: float,
        call_seconds: float,
        tolerates_suspension: bool = False,
    ) -> None:
        require_client()
        self._quorum = quorum
        self.path = path
        self._directory = storage
        self._options = options
        self._call_seconds = call_seconds
        self.tolerates_suspension = tolerates_suspension
        retry = KazooRetry(max_tries=-1, delay=0.1, max_delay=1.0)
        self.client = KazooClient(
            hosts=quorum, timeout=session_seconds, connection_retry=retry, logger=_quiet()
        )
        try:
            self.client.start(timeout=call_seconds)
        except KazooTimeoutError as error:
            self.client.stop()
            self.client.close()
            raise HighAvailabilityError(
                f"ZooKeeper does not answer at {quorum} within {call_seconds:g} s. Check "
                "high-availability.zookeeper.quorum, and that most of its servers run."
            ) from error

    @property
    def storage(self) -> Storage:
        return open_storage(self._directory, self._options)

    def call(self, start: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Make an asynchronous call, again after a lost connection, and return its result.

        Raises HighAvailabilityError, except for the errors about the node of the call.
        """
        deadline = now() + self._call_seconds
        while True:
            try:
                return _answered(
                    start(*arguments, **options).get(timeout=max(0.1, deadline - now()))
                )
            except (*_UNANSWERED, KazooTimeoutError) as error:
                if now() >= deadline or isinstance(error, KazooTimeoutError):
                    raise HighAvailabilityError(
                        f"ZooKeeper at {self._quorum} did not answer within "
                        f"{self._call_seconds:g} s ({type(error).__name__})."
                    ) from error
                threading.Event().wait(0.1)
            except _ABOUT_NODES:
                raise
            except KazooException as error:
                raise HighAvailabilityError(
                    f"ZooKeeper at {self._quorum} refuses a call: {error!r}. Check the rights (ACL) "
                    f"of the nodes below {self.path}."
                ) from error

    def prepare(self) -> None:
        """Create the nodes of the group."""
        for name in ("election", *KINDS):
            self.call(self.client.ensure_path_async, f"{self.path}/{name}")
        with suppress(NodeExistsError):
            self.call(self.client.create_async, f"{self.path}/term", b"{}")

    def leader(self) -> Leader | None:
        try:
            payload, stat = self.call(self.client.get_async, f"{self.path}/term")
            found = json.loads(payload)
            member, version = found["member"], found["version"]
            names = self.call(self.client.get_children_async, f"{self.path}/election")
            if not names:
                return None
            # The member with the first node leads, or is about to begin its term.
            first, _ = self.call(self.client.get_async, f"{self.path}/election/{min(names)}")
        except (NoNodeError, ValueError, KeyError, TypeError):
            return None
        if first != str(member).encode():
            return None
        try:
            # The address belongs to the session, so it vanishes with the leader.
            url, _ = self.call(self.client.get_async, f"{self.path}/address")
        except NoNodeError:
            return Leader(stat.version, member, version, None)
        return Leader(stat.version, member, version, url.decode())

    def contend(self, member: Member, listener: Listener) -> ZooKeeperElection:
        self.prepare()
        self.check_member(member)
        return ZooKeeperElection(self, member, listener)

    def check_member(self, member: Member) -> None:
        found = self.leader()
        if found is not None and found.version != member.version:
            raise DifferentVersionError(found.version, member.version)

    def store(self, term: int) -> ZooKeeperStore:
        return ZooKeeperStore(self, term)

    def fence(self, term: int) -> Fence:
        return Fence(self._directory, f"{_FENCES}/{term:010d}", term, self._options)

    def raise_fence(self, term: int) -> None:
        """Create the file of a term, and remove those of earlier ones."""
        storage = self.storage
        storage.write(f"{_FENCES}/{term:010d}", str(term).encode())
        for file in storage.at(_FENCES).list_files():
            if file.path.isdigit() and int(file.path) < term:
                storage.delete(f"{_FENCES}/{file.path}")
        # A leader that was frozen before it wrote its file has created it in vain.
        self.store(term).check()

    def close(self) -> None:
        self.client.stop()
        self.client.close()


class ZooKeeperStore:
    """The entries of a term, a node each."""

    def __init__(self, zookeeper: ZooKeeper, term: int) -> None:
        self._zookeeper = zookeeper
        self._term = term

    @property
    def term(self) -> int:
        return self._term

    def names(self, kind: str) -> list[str]:
        path = f"{self._zookeeper.path}/{kind}"
        found: list[str] = self._call(lambda client: client.get_children_async(path))
        return sorted(found)

    def get(self, kind: str, name: str) -> bytes | None:
        try:
            payload, _ = self._call(lambda client: client.get_async(self._node(kind, name)))
        except NoNodeError:
            return None
        # A node of others may have no data.
        return bytes(payload or b"")

    def put(self, kind: str, name: str, payload: bytes) -> None:
        node = self._node(kind, name)
        # The entry may appear or vanish between two calls of the same leader's threads.
        for _ in range(_TRIES):
            with suppress(NodeExistsError):
                return self.change(lambda transaction: transaction.create(node, payload))
            with suppress(NoNodeError):
                return self.change(lambda transaction: transaction.set_data(node, payload))
        raise HighAvailabilityError(f"The node {node} changes all the time.")

    def delete(self, kind: str, name: str) -> None:
        node = self._node(kind, name)
        with suppress(NoNodeError):
            self.change(lambda transaction: transaction.delete(node))

    def check(self) -> None:
        self.change(lambda _: None)

    def change(self, add: Callable[[Any], object]) -> None:
        """Change nodes in a transaction that ZooKeeper refuses once the term has ended."""

        def commit(client: Any) -> Any:
            transaction = client.transaction()
            transaction.check(f"{self._zookeeper.path}/term", self._term)
            add(transaction)
            return transaction.commit_async()

        results = self._call(commit)
        if isinstance(results[0], BadVersionError | NoNodeError):
            raise LeadershipLostError(self._term, "a later term has begun in ZooKeeper")
        for result in results:
            if isinstance(result, Exception) and not isinstance(
                result, RolledBackError | RuntimeInconsistency
            ):
                raise result

    def _call(self, start: Callable[[Any], Any]) -> Any:
        return self._zookeeper.call(lambda: start(self._zookeeper.client))

    def _node(self, kind: str, name: str) -> str:
        if kind not in KINDS or "/" in name:
            raise ValueError(f"{kind}/{name} is no valid entry")
        return f"{self._zookeeper.path}/{kind}/{name}"


class ZooKeeperElection:
    """Stands for election in a thread: the member with the oldest node of its session leads."""

    def __init__(self, zookeeper: ZooKeeper, member: Member, listener: Listener) -> None:
        self._zookeeper = zookeeper
        self._client = zookeeper.client
        self._member = member
        self._listener = listener
        self._closing = threading.Event()
        # Set when the session, or the connection, is lost; and when a node before the own one goes.
        self._lost = threading.Event()
        self._changed = threading.Event()
        self._reason = ""
        self._notifications = Notifications()
        self._client.add_listener(self._connection_changed)
        self._thread = threading.Thread(target=self._run, name="firesteel-election", daemon=True)
        self._thread.start()

    def announce(self, term: int, url: str) -> None:
        path = f"{self._zookeeper.path}/address"
        store = self._zookeeper.store(term)
        for _ in range(_TRIES):
            # That of the last leader.
            self._remove_address(store)
            with suppress(NodeExistsError):
                return store.change(
                    lambda transaction: transaction.create(path, url.encode(), ephemeral=True)
                )
            if self._has_announced(path, url):
                # The answer to the call was lost, and it was repeated.
                return None
        raise HighAvailabilityError(f"The node {path} appears again all the time.")

    def _has_announced(self, path: str, url: str) -> bool:
        """Return True if the node is that of this session, so it does not vanish with an old one."""
        try:
            payload, stat = self._zookeeper.call(self._client.get_async, path)
        except NoNodeError:
            return False
        session, _ = self._client.client_id
        return bool(payload == url.encode() and stat.ephemeralOwner == session)

    def _remove_address(self, store: ZooKeeperStore) -> None:
        with suppress(NoNodeError):
            store.change(lambda transaction: transaction.delete(f"{self._zookeeper.path}/address"))

    def close(self) -> None:
        self._closing.set()
        self._changed.set()
        self._thread.join()
        self._client.remove_listener(self._connection_changed)
        self._notifications.close()

    def _connection_changed(self, state: Any) -> None:
        """Called in a thread of kazoo, which must not wait."""
        is_lost = state == KazooState.LOST or (
            state == KazooState.SUSPENDED and not self._zookeeper.tolerates_suspension
        )
        if is_lost:
            self._reason = (
                "its session in ZooKeeper has ended"
                if state == KazooState.LOST
                else "it has no connection to ZooKeeper"
            )
            self._lost.set()
            self._changed.set()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._lost.clear()
            self._changed.clear()
            try:
                node = self._stand()
                self._withdraw(all_but=node)
                if self._wait_for_turn(node):
                    self._lead(node)
            except (
                KazooException,
                HighAvailabilityError,
                LeadershipLostError,
                StorageError,
            ) as error:
                _log.warning("the election in ZooKeeper is repeated: %s", error)
                self._closing.wait(_RETRY_SECONDS)
            finally:
                self._withdraw()

    def _stand(self) -> str:
        path = f"{self._zookeeper.path}/election/member-"
        node: str = self._zookeeper.call(
            self._client.create_async, path, self._member.id.encode(), ephemeral=True, sequence=True
        )
        return node.rpartition("/")[2]

    def _withdraw(self, all_but: str | None = None) -> None:
        """Remove the own nodes. Those of a call whose answer was lost are among them."""
        base = f"{self._zookeeper.path}/election"
        try:
            for name in self._zookeeper.call(self._client.get_children_async, base):
                with suppress(NoNodeError):
                    owner, _ = self._zookeeper.call(self._client.get_async, f"{base}/{name}")
                    if owner.decode() == self._member.id and name != all_but:
                        self._zookeeper.call(self._client.delete_async, f"{base}/{name}")
        except (KazooException, HighAvailabilityError) as error:
            # They vanish with the session.
            _log.debug("a node of the election remains: %s", error)

    def _wait_for_turn(self, node: str) -> bool:
        """Wait until the own node is the first. Return False if it is lost before."""
        base = f"{self._zookeeper.path}/election"
        while not self._closing.is_set() and not self._lost.is_set():
            self._changed.clear()
            names = sorted(self._zookeeper.call(self._client.get_children_async, base))
            if node not in names:
                return False
            position = names.index(node)
            if position == 0:
                return True
            before = f"{base}/{names[position - 1]}"
            exists = self._zookeeper.call(
                self._client.exists_async, before, watch=lambda _: self._changed.set()
            )
            if exists is not None and not self._lost.is_set():
                self._changed.wait()
        return False

    def _lead(self, node: str) -> None:
        term = self._claim(node)
        self._zookeeper.raise_fence(term)
        _log.info("this master leads (term %d)", term)
        self._notifications.post(lambda: self._listener.granted(term))
        while not self._closing.is_set() and not self._lost.is_set():
            self._changed.wait()
            self._changed.clear()
        if self._closing.is_set():
            with suppress(KazooException, HighAvailabilityError, LeadershipLostError):
                self._remove_address(self._zookeeper.store(term))
            return
        _log.warning("this master no longer leads (term %d): %s", term, self._reason)
        reason = self._reason
        self._notifications.post(lambda: self._listener.revoked(term, reason))

    def _claim(self, node: str) -> int:
        """Begin a term: raise the version of the node ``term``, as the owner of the first node."""
        path = f"{self._zookeeper.path}/term"
        _, stat = self._zookeeper.call(self._client.get_async, path)
        facts = {"member": self._member.id, "version": self._member.version}

        def commit() -> Any:
            transaction = self._client.transaction()
            transaction.check(f"{self._zookeeper.path}/election/{node}", 0)
            transaction.set_data(path, json.dumps(facts).encode(), stat.version)
            return transaction.commit_async()

        results = self._zookeeper.call(commit)
        for result in results:
            if isinstance(result, Exception):
                raise HighAvailabilityError(f"the term was not begun: {result!r}")
        return int(results[1].version)


def _answered(result: Any) -> Any:
    """Return a result, unless it is that of a transaction without an answer."""
    for one in result if isinstance(result, list) else ():
        if isinstance(one, _UNANSWERED):
            raise one
    return result


def _quiet() -> logging.Logger:
    """Return a logger for kazoo, which would fill the log while ZooKeeper is away."""
    logger = logging.getLogger("firesteel.zookeeper")
    logger.setLevel(logging.ERROR)
    return logger
