"""Failures of ZooKeeper, with a real ensemble of three and a network that is cut by a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import TransactionRequest
from kazoo.exceptions import ConnectionLoss, NoAuthError, RuntimeInconsistency, SessionMovedError

from firesteel.errors import LeadershipLostError
from firesteel.leader.services import HighAvailabilityError
from firesteel.leader.settings import LeaderSettings
from firesteel.leader.zookeeper import ZooKeeper
from tests.leader.candidates import Candidate
from tests.leader.groups import zookeeper_settings
from tests.servers.proxy import Proxy
from tests.servers.zookeeper import Ensemble, running_ensemble
from tests.waiting import wait_until


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as held:
        yield held


@pytest.fixture
def settings(ensemble: Ensemble, tmp_path: Path) -> LeaderSettings:
    return replace(zookeeper_settings(ensemble.quorum, tmp_path), connection_timeout=5.0)


def test_a_leader_without_a_connection_is_replaced_and_refused(ensemble, settings, stack):
    proxy = Proxy(ensemble.ports[0])
    stack.callback(proxy.close)
    through = replace(settings, quorum=f"127.0.0.1:{proxy.port}")
    first = Candidate(through.open())
    stack.callback(first.close)
    wait_until(lambda: first.granted)
    old = first.services.store(first.granted[0])
    old.put("jobs", "a", b"1")
    second = Candidate(settings.open())
    stack.callback(second.close)
    proxy.cut()
    wait_until(lambda: second.granted)
    wait_until(lambda: first.revoked == first.granted)
    assert second.granted[0] > first.granted[0]
    second.services.store(second.granted[0]).put("jobs", "a", b"2")
    with pytest.raises(LeadershipLostError):
        first.services.fence(first.granted[0]).check()
    proxy.mend()
    wait_until(lambda: _is_refused(old))
    assert second.services.store(second.granted[0]).get("jobs", "a") == b"2"


def _is_refused(store) -> bool:
    """Return True once the store says that the term has ended, and not only that it is away."""
    try:
        store.put("jobs", "a", b"late")
    except LeadershipLostError:
        return True
    except HighAvailabilityError:
        return False
    raise AssertionError("an old leader has written an entry")


@pytest.mark.slow
def test_the_leader_survives_the_death_of_one_server(tmp_path, stack):
    ensemble = stack.enter_context(running_ensemble(tmp_path / "zookeeper"))
    settings = zookeeper_settings(ensemble.quorum, tmp_path)
    masters = [Candidate(settings.open()) for _ in range(2)]
    for one in masters:
        stack.callback(one.close)
    for number in range(3):
        ensemble.kill(number)
        wait_until(lambda: _writes(masters, b"%d" % number))  # noqa: B023
        ensemble.start(number)
        ensemble.wait_until_it_answers()


@pytest.mark.slow
def test_no_master_leads_without_a_quorum_and_one_leads_when_it_is_back(tmp_path, stack):
    ensemble = stack.enter_context(running_ensemble(tmp_path / "zookeeper"))
    settings = replace(zookeeper_settings(ensemble.quorum, tmp_path), connection_timeout=3.0)
    masters = [Candidate(settings.open()) for _ in range(2)]
    for one in masters:
        stack.callback(one.close)
    wait_until(lambda: _writes(masters, b"before"))
    terms = [term for one in masters for term in one.granted]
    for number in (0, 1):
        ensemble.kill(number)
    wait_until(lambda: sum(len(one.revoked) for one in masters) == len(terms))
    with pytest.raises(HighAvailabilityError):
        masters[0].services.store(terms[-1]).put("jobs", "a", b"without a quorum")
    for number in (0, 1):
        ensemble.start(number)
    wait_until(lambda: _writes(masters, b"after"))
    assert max(term for one in masters for term in one.granted) > max(terms)


def _writes(masters: list[Candidate], payload: bytes) -> bool:
    """Return True if the newest leader can write an entry. One that has stepped down leads no more."""
    newest = max(masters, key=lambda one: max(one.granted, default=0))
    if not newest.granted or newest.granted[-1] in newest.revoked:
        return False
    try:
        newest.services.store(newest.granted[-1]).put("jobs", "a", payload)
    except (LeadershipLostError, HighAvailabilityError):
        return False
    return True


def test_a_leader_that_is_replaced_before_it_has_its_fence_stands_again(
    settings, stack, monkeypatch
):
    """As a process that is frozen there, and wakes up after the next term has begun."""
    real = ZooKeeper.raise_fence
    replaced: list[int] = []

    def replace_first(self: ZooKeeper, term: int) -> None:
        if not replaced:
            replaced.append(term)
            self.client.set(f"{self.path}/term", b"{}")
        real(self, term)

    monkeypatch.setattr(ZooKeeper, "raise_fence", replace_first)
    master = Candidate(settings.open())
    stack.callback(master.close)
    wait_until(lambda: master.granted)
    assert master.granted[0] > replaced[0] + 1
    with pytest.raises(LeadershipLostError):
        master.services.store(replaced[0]).check()


def test_a_change_whose_answer_is_lost_is_made_once(settings, stack, monkeypatch):
    master = Candidate(settings.open())
    stack.callback(master.close)
    wait_until(lambda: master.granted)
    real = TransactionRequest.commit_async
    lost: list[object] = []

    def commit(self: TransactionRequest) -> object:
        answer = real(self)
        if len(lost) % 2 == 0:
            lost.append(answer.get(timeout=20))
            return Answer(ConnectionLoss())
        lost.append(None)
        return answer

    monkeypatch.setattr(TransactionRequest, "commit_async", commit)
    [term] = master.granted
    store = master.services.store(term)
    store.put("jobs", "a", b"1")
    store.put("jobs", "a", b"2")
    master.election.announce(term, "http://host:8081")
    assert store.get("jobs", "a") == b"2"
    leader = master.services.leader()
    assert leader is not None
    assert leader.url == "http://host:8081"
    store.delete("jobs", "a")
    assert store.get("jobs", "a") is None
    assert len(lost) >= 8


def test_a_call_that_zookeeper_refuses_is_an_error_of_the_group(settings, stack):
    """Callers handle this error: they try again, or end with it."""
    zookeeper = settings.open()
    stack.callback(zookeeper.close)
    with pytest.raises(HighAvailabilityError, match=r"refuses a call: NoAuthError.*ACL"):
        zookeeper.call(lambda: Answer(NoAuthError()))


class Answer:
    """The answer of a call that a test gives."""

    def __init__(self, result: object) -> None:
        self._result = result

    def get(self, timeout: float) -> object:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


@pytest.mark.parametrize(
    "lost",
    [ConnectionLoss(), SessionMovedError(), [SessionMovedError(), RuntimeInconsistency()]],
    ids=["connection", "session", "transaction"],
)
def test_a_call_without_an_answer_is_repeated(settings, stack, lost):
    zookeeper = settings.open()
    stack.callback(zookeeper.close)
    answers = [lost, lost, ["done"]]
    assert zookeeper.call(lambda: Answer(answers.pop(0))) == ["done"]
    assert answers == []
    with pytest.raises(HighAvailabilityError, match="did not answer within"):
        zookeeper.call(lambda: Answer(lost))
