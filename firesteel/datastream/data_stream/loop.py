"""The two ends of a loop, for the streams that have one."""

from __future__ import annotations

from firesteel.datastream.data_stream.stream_base import StreamBase
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import IterationHeadSpec, IterationTailSpec
from firesteel.graph.transformations import ChainingStrategy, Origin, Transformation


def iteration_head(
    origins: tuple[Origin, ...], max_wait: object, *, feedback_only: bool = False
) -> Transformation:
    """It is not added to the environment: who does not use the loop need not close it."""
    if isinstance(max_wait, bool) or not isinstance(max_wait, int) or max_wait < 0:
        raise InvalidProgramError(
            f"max_wait must be an int of milliseconds, 0 or more, but it is {max_wait!r}."
        )
    return Transformation(
        name="Iteration Head",
        spec=IterationHeadSpec(max_wait, feedback_only),
        inputs=(origins,),
        # It ends later than its input, so it is not part of the input's chain.
        chaining=ChainingStrategy.HEAD,
    )


def close_loop(head: Transformation, feedback: StreamBase) -> StreamBase:
    if not any(_comes_from(origin.transformation, head) for origin in feedback._origins):
        raise InvalidProgramError(
            "Cannot close an iteration with a feedback stream that does not originate from said "
            f"iteration: '{feedback._origins[0].transformation.name}' reads nothing that comes "
            f"from '{head.name}'. Build it from the stream that iterate() returned."
        )
    tail = Transformation(
        name="Iteration Tail", spec=IterationTailSpec(), inputs=(feedback._origins,)
    )
    head.tails.append(tail)
    feedback.get_execution_environment()._add_operator(tail)
    return feedback


def _comes_from(transformation: Transformation, head: Transformation) -> bool:
    waiting, seen = [transformation], set[int]()
    while waiting:
        one = waiting.pop()
        if one is head:
            return True
        if one.id not in seen:
            seen.add(one.id)
            waiting += [origin.transformation for origins in one.inputs for origin in origins]
    return False
