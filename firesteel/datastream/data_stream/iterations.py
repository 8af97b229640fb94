"""ConnectedIterativeStreams: a stream, and what comes back to it, as two streams."""

from __future__ import annotations

from dataclasses import replace

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.arguments import ProgramTypeError, as_type
from firesteel.datastream.data_stream.connected_streams import ConnectedStreams
from firesteel.datastream.data_stream.data_stream import DataStream
from firesteel.datastream.data_stream.stream_base import StreamBase
from firesteel.errors import InvalidProgramError, shorten
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


class IterativeStream(DataStream):
    """What ``iterate`` gives: the records of the stream, and those of its feedback streams.

    Setters such as ``name`` and ``uid`` are for the loop.
    """

    def __init__(self, input_stream: StreamBase, max_wait: int = 0) -> None:
        self._input = input_stream
        self._max_wait = max_wait
        self._head = iteration_head(input_stream._origins, max_wait)
        super().__init__(
            input_stream.get_execution_environment(),
            (Origin(self._head),),
            input_stream.get_type(),
        )

    def close_with(self, feedback_stream: StreamBase) -> StreamBase:
        """Send the records of a stream that comes out of this one back to it; that stream.

        It may be a union, and there may be several of them, each with a call of its own.
        """
        self._check_joinable("close_with", feedback_stream)
        return close_loop(self._head, feedback_stream)

    def with_feedback_type(self, feedback_type: TypeInformation) -> ConnectedIterativeStreams:
        """The same loop, with records of another type coming back as the second of two streams."""
        if not isinstance(feedback_type, TypeInformation):
            raise ProgramTypeError(
                "with_feedback_type expects a TypeInformation, for example Types.STRING(), but got "
                f"{shorten(feedback_type)}."
            )
        return ConnectedIterativeStreams(
            self._input,
            as_type("with_feedback_type", feedback_type, "feedback type"),
            self._max_wait,
        )


class ConnectedIterativeStreams(ConnectedStreams):
    """What ``with_feedback_type`` gives: the input is the first stream, the feedback the second."""

    def __init__(
        self, input_stream: StreamBase, feedback_type: TypeInformation, max_wait: int
    ) -> None:
        # The head only has to know when the input ends: that takes no repartitioning.
        origins = tuple(replace(one, partitioning=None) for one in input_stream._origins)
        self._head = iteration_head(origins, max_wait, feedback_only=True)
        environment = input_stream.get_execution_environment()
        super().__init__(
            input_stream, DataStream(environment, (Origin(self._head),), feedback_type)
        )

    def close_with(self, feedback_stream: StreamBase) -> StreamBase:
        """Send the records of a stream that comes out of these two back; that stream."""
        self.stream1._check_joinable("close_with", feedback_stream)
        return close_loop(self._head, feedback_stream)
