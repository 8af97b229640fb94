"""Iterations: the epochs that a loop needs, and its end."""

from __future__ import annotations

from typing import Any

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.graph.job_graph import JobGraph
from firesteel.master.iterations import Iterations
from firesteel.master.state_ledger import StateLedger
from firesteel.protocol.messages import Feedback, SlotAck, SlotAddress, SubtaskAck, VertexMetrics


class Told:
    """The iterations of a program, which hear how each epoch ended."""

    def __init__(self, *max_waits: int, nested: bool = False) -> None:
        env = StreamExecutionEnvironment(Configuration()).set_parallelism(1)
        stream: Any = env.from_collection([1])
        loops = []
        for max_wait in max_waits:
            loops.append(stream.iterate(max_wait))
            stream = loops[-1].rebalance().map(lambda n: n)
            if not nested:
                loops[-1].close_with(stream)
        if nested:
            for loop in loops:
                loop.close_with(stream)
        self.graph: JobGraph = env._compile().job_graph
        self.iterations = Iterations(self.graph, StateLedger())
        self.heads = [edge.head for edge in self.graph.feedback_edges]

    def epoch_ended(self, now: float, *pending: int, source_ended: bool = True) -> None:
        """End an epoch that leaves ``pending`` records in each loop."""
        feedback = {
            edge.tail: Feedback(records)
            for edge, records in zip(self.graph.feedback_edges, pending, strict=True)
        }
        ack = SubtaskAck(
            0, 0, {}, {}, None, {}, {}, False, 0, VertexMetrics(), {}, feedback=feedback
        )
        finished = {
            (vertex.id, 0): source_ended and vertex.name.startswith("Source")
            for vertex in self.graph.vertices
        }
        slot = SlotAck(SlotAddress("job", 0, 0, 0, 1), "host", (ack,))
        self.iterations.epoch_ended([slot], finished, now)


def test_records_under_way_want_an_epoch_at_once() -> None:
    told = Told(5000)
    told.epoch_ended(10.0, 3, source_ended=False)
    assert list(told.iterations.due_at(10.0)) == [10.0]


def test_an_empty_loop_is_over_after_max_wait_and_not_sooner() -> None:
    told = Told(5000)
    told.epoch_ended(10.0, 0)
    told.epoch_ended(12.0, 0)
    assert list(told.iterations.due_at(12.0)) == [15.0]
    assert told.iterations.plan(14.9) == frozenset()
    assert told.iterations.plan(15.0) == frozenset(told.heads)
    assert list(told.iterations.due_at(15.0)) == []


def test_what_flows_meanwhile_makes_it_wait_anew() -> None:
    told = Told(5000)
    told.epoch_ended(10.0, 0)
    told.epoch_ended(12.0, 1)
    told.epoch_ended(13.0, 0)
    assert list(told.iterations.due_at(13.0)) == [18.0]


def test_a_loop_does_not_end_before_its_input() -> None:
    told = Told(5000)
    told.epoch_ended(10.0, 0, source_ended=False)
    assert list(told.iterations.due_at(10.0)) == []
    assert told.iterations.plan(99.0) == frozenset()


def test_without_max_wait_a_loop_is_never_over() -> None:
    told = Told(0)
    told.epoch_ended(10.0, 0)
    assert told.iterations.plan(1e9) == frozenset()


def test_loops_one_after_the_other_end_one_after_the_other() -> None:
    told = Told(1000, 1000)
    told.epoch_ended(10.0, 0, 0)
    assert told.iterations.plan(11.0) == frozenset(told.heads[:1])


def test_loops_within_loops_end_together_after_the_longest_wait() -> None:
    told = Told(1000, 3000, nested=True)
    told.epoch_ended(10.0, 0, 1)
    assert told.iterations.plan(20.0) == frozenset()
    told.epoch_ended(20.0, 0, 0)
    assert told.iterations.plan(22.0) == frozenset()
    assert told.iterations.plan(23.0) == frozenset(told.heads)
