"""The rules of an election with leases, with simulated clocks."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.leader.lease_election import (
    Decision,
    Granted,
    Lease,
    LeaseElection,
    Look,
    Renew,
    Revoked,
    TakeOver,
)

DURATION, INTERVAL = 8.0, 2.0


def lease(sequence: int, *, released: bool = False) -> Lease:
    return Lease(3, "other", sequence, DURATION, "1", released=released)


def test_a_standby_takes_over_a_lease_that_does_not_change_for_its_duration():
    election = LeaseElection(DURATION, INTERVAL)
    assert election.tick(100.0) == [Look()]
    assert election.seen(3, lease(1), 100.0) == []
    assert election.seen(3, lease(2), 107.0) == []
    assert election.seen(3, lease(2), 114.9) == []
    assert election.seen(3, lease(2), 115.0) == [TakeOver(3)]


def test_a_released_lease_is_taken_over_at_once():
    election = LeaseElection(DURATION, INTERVAL)
    assert election.seen(3, lease(1, released=True), 0.0) == [TakeOver(3)]


def test_a_new_group_needs_no_patience():
    assert LeaseElection(DURATION, INTERVAL).seen(0, None, 0.0) == [TakeOver(0)]


def test_a_standby_is_as_patient_as_the_leader_has_promised():
    election = LeaseElection(1.0, 0.5)
    election.seen(3, lease(1), 0.0)
    assert election.seen(3, lease(1), 7.9) == []


def test_a_new_term_starts_the_patience_again():
    election = LeaseElection(DURATION, INTERVAL)
    election.seen(3, lease(1), 0.0)
    assert election.seen(4, lease(1), 8.0) == []
    assert election.seen(4, None, 8.0) == []
    assert election.seen(4, None, 16.0) == [TakeOver(4)]


def test_a_leader_renews_and_gives_up_before_others_may_take_over():
    election = LeaseElection(DURATION, INTERVAL)
    assert election.took_over(5, 10.0) == [Granted(5)]
    assert election.tick(10.0) == [Renew(5, 1)]
    election.renewed(1, 10.0)
    assert election.leads(16.3)
    assert not election.leads(16.5)
    [lost] = election.tick(16.5)
    assert isinstance(lost, Revoked)
    assert election.term is None


def test_a_leader_whose_term_has_ended_gives_up_at_once():
    election = LeaseElection(DURATION, INTERVAL)
    election.took_over(5, 0.0)
    assert election.renewal_failed(1.0, ended=False, reason="disk full") == []
    assert election.leads(1.0)
    assert election.renewal_failed(2.0, ended=True, reason="gone") == [Revoked(5, "gone")]
    assert not election.leads(2.0)


@dataclass
class SharedDirectory:
    """The atomic operations of a lease directory."""

    term: int = 0
    lease: Lease | None = None
    writes: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class Master:
    """A candidate whose clock has a speed of its own, and which may be frozen in between."""

    name: str
    directory: SharedDirectory
    speed: float
    offset: float
    election: LeaseElection = field(default_factory=lambda: LeaseElection(DURATION, INTERVAL))
    todo: list[Decision] = field(default_factory=list)
    granted: list[int] = field(default_factory=list)

    def clock(self, time: float) -> float:
        return time * self.speed + self.offset

    def step(self, time: float, *, disk_fails: bool) -> None:
        """Carry out one decision, or ask for the next ones. A freeze may follow each step."""
        now = self.clock(time)
        if not self.todo:
            self.todo = self.election.tick(now)
            return
        decision, directory = self.todo.pop(0), self.directory
        match decision:
            case Look():
                self.todo += self.election.seen(directory.term, directory.lease, now)
            case TakeOver(term):
                if directory.term == term and not disk_fails:
                    directory.term += 1
                    directory.lease = None
                    self.todo += self.election.took_over(term + 1, now)
            case Renew(term, sequence):
                if directory.term != term:
                    self.todo += self.election.renewal_failed(now, ended=True, reason="gone")
                elif disk_fails:
                    self.todo += self.election.renewal_failed(now, ended=False, reason="disk")
                else:
                    directory.lease = Lease(term, self.name, sequence, DURATION, "1")
                    self.election.renewed(sequence, now)
            case Granted(term):
                self.granted.append(term)
            case Revoked():
                pass

    def write(self, time: float) -> bool:
        """Write as the leader that this master believes to be. The directory checks the term."""
        term = self.election.term
        if term is None or self.directory.term != term:
            return False
        self.directory.writes.append((term, self.name))
        return True


steps = st.lists(
    st.tuples(
        st.integers(0, 2),  # the master
        st.floats(0.0, 3.0),  # the seconds before its step
        st.sampled_from([False] * 8 + [True]),  # its disk fails
    ),
    max_size=300,
)
freezes = st.dictionaries(st.integers(0, 299), st.floats(1.0, 60.0), max_size=5)


@given(
    steps, freezes, st.lists(st.floats(0.95, 1.05), min_size=3, max_size=3), st.floats(-1e6, 1e6)
)
@settings(deadline=None)
def test_terms_have_one_leader_and_never_go_back(history, frozen, speeds, offset):
    directory = SharedDirectory()
    masters = [
        Master(f"m{number}", directory, speed, offset * number)
        for number, speed in enumerate(speeds)
    ]
    wakes_at = [0.0] * 3
    time = 0.0
    for number, (who, pause, disk_fails) in enumerate(history):
        time += pause
        if number in frozen:
            wakes_at[who] = time + frozen[number]
        if time < wakes_at[who]:
            continue
        masters[who].step(time, disk_fails=disk_fails)
        masters[who].write(time)
        # Clocks of about the same speed: at most one master is certain to lead.
        certain = [one.name for one in masters if one.election.leads(one.clock(time))]
        assert len(certain) <= 1
    leaders: dict[int, set[str]] = {}
    for term, name in directory.writes:
        leaders.setdefault(term, set()).add(name)
    assert all(len(names) == 1 for names in leaders.values())
    assert [term for term, _ in directory.writes] == sorted(term for term, _ in directory.writes)
    granted = [term for one in masters for term in one.granted]
    assert len(granted) == len(set(granted))


@given(st.integers(0, 2), st.floats(0.1, 2.0))
@settings(deadline=None, max_examples=50)
def test_a_dead_leader_is_replaced_within_its_lease_and_two_looks(dead, pause):
    directory = SharedDirectory()
    masters = [Master(f"m{number}", directory, 1.0, 0.0) for number in range(3)]
    time = 0.0
    while not any(one.granted for one in masters):
        time += 0.1
        for one in masters:
            one.step(time, disk_fails=False)
    leader = next(one for one in masters if one.granted)
    time += pause * dead
    died_at, others = time, [one for one in masters if one is not leader]
    while not any(one.granted for one in others):
        time += 0.1
        for one in others:
            one.step(time, disk_fails=False)
        assert time - died_at <= DURATION + 2 * INTERVAL + 1.0
