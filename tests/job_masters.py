"""Job masters without a runner: their enumerators have answered already."""

from __future__ import annotations

from typing import Any

from firesteel.graph.operator_specs import SourceSpec
from firesteel.master.job_master import JobMaster
from firesteel.master.job_status import JobState
from firesteel.master.rate_control import RateControl
from firesteel.master.source_coordinator import SourceCoordinator
from firesteel.master.split_enumerators import EnumeratorOfSource
from firesteel.protocol.program import JobProgram


def started_master(
    program: JobProgram, rate: RateControl, state: JobState | None = None, **more: Any
) -> JobMaster:
    """Return a running job master that knows the splits of its sources."""
    sources = {}
    for node in program.levels.job_graph.nodes.values():
        if isinstance(node.spec, SourceSpec):
            source = node.spec.source
            enumerator = EnumeratorOfSource(node.name, program.job_name, source, node.parallelism)
            coordinator = SourceCoordinator(
                node.id, source, node.parallelism, enumerator.create(None)
            )
            coordinator.decide(0.0)
            coordinator.discovered(enumerator.discover(), 0.0)
            sources[node.id] = coordinator
    master = JobMaster(program, sources, rate, state=state, **more)
    master.start()
    return master
