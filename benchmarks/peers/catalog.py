"""Catalog of peers: Firesteel and its references."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Peer:
    """One column of the table.

    `environment` names a directory under .bench. None means the environment of Firesteel.
    """

    name: str
    title: str
    module: str
    environment: str | None = None
    options: tuple[str, ...] = ()
    # Long runs are steady enough to run once.
    slow: bool = False
    # The goal of Firesteel: the minimum ratio to the rate of this peer, in `goal_cases` or in all.
    goal: float | None = None
    goal_cases: tuple[str, ...] = ()
    # The sections that this peer measures, too.
    sections: tuple[str, ...] = ()

    def goal_for(self, case: str) -> float | None:
        return self.goal if not self.goal_cases or case in self.goal_cases else None

    def python(self, own: str) -> str | None:
        """Return the interpreter of the peer, or None if `make bench-peers` has not been run."""
        if self.environment is None:
            return own
        python = ROOT / ".bench" / self.environment / "bin" / "python"
        return str(python) if python.exists() else None


FIRESTEEL = Peer("firesteel", "Firesteel", "benchmarks.peers.firesteel")

REFERENCES = (
    Peer(
        "micro_batch",
        "micro-batch",
        "benchmarks.peers.firesteel",
        options=("micro-batch",),
        goal=0.9,
        sections=("latency",),
    ),
    Peer("handwritten", "hand-written", "benchmarks.peers.handwritten", goal=0.7),
    Peer(
        "pyflink",
        "PyFlink",
        "benchmarks.peers.pyflink",
        environment="pyflink",
        slow=True,
        goal=100.0,
        goal_cases=("reduce_1k", "reduce_1m", "tumbling_1k"),
        sections=("latency",),
    ),
    Peer(
        "pyflink_thread",
        "PyFlink thread mode",
        "benchmarks.peers.pyflink",
        environment="pyflink",
        options=("thread",),
        slow=True,
        sections=("latency",),
    ),
    Peer(
        "pyflink_tuned",
        "PyFlink tuned",
        "benchmarks.peers.pyflink",
        environment="pyflink",
        options=("tuned",),
        slow=True,
    ),
    Peer(
        "transform_with_state",
        "transformWithState",
        "benchmarks.peers.transform_with_state",
        environment="spark",
        goal=5.0,
    ),
    Peer(
        "bytewax",
        "bytewax",
        "benchmarks.peers.bytewax",
        environment="bytewax",
        goal=1.0,
        sections=("latency",),
    ),
    Peer(
        "spark_real_time",
        "Spark Real-time Mode",
        "benchmarks.peers.spark_real_time",
        sections=("latency",),
    ),
)
PEERS = (FIRESTEEL, *REFERENCES)
