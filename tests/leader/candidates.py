"""Masters of tests that stand for election, and run nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.leader.services import HighAvailability, Listener, Member


@dataclass
class Candidate:
    """A master of a test: notes what it is told."""

    services: HighAvailability
    member: Member = field(default_factory=Member)
    granted: list[int] = field(default_factory=list)
    revoked: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        listener = Listener(self.granted.append, lambda term, _: self.revoked.append(term))
        self.election = self.services.contend(self.member, listener)

    def close(self) -> None:
        self.election.close()
        self.services.close()
