"""Iterations: streams with records that come back. Not in PyFlink."""

from __future__ import annotations

from dataclasses import replace

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.arguments import ProgramTypeError, as_type
from firesteel.datastream.data_stream.connected_streams import ConnectedStreams
from firesteel.datastream.data_stream.data_stream import DataStream
from firesteel.datastream.data_stream.stream_base import StreamBase, check_same_environment
from firesteel.errors import InvalidProgramError, shorten
from firesteel.graph.operator_specs import IterationHeadSpec, IterationTailSpec
from firesteel.graph.transformations import ChainingStrategy, Origin, Transformation
from firesteel.stability import public_evolving


def iteration_head(
    origins: tuple[Origin, ...], max_wait: object, *, feedback_only: bool = False
) -> Transformation:
    """Return the head of a loop. It joins the program only when the loop is closed or read."""
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
    """Send the records of ``feedback`` back to the head."""
    origins = feedback.recorded.origins
    if not any(_comes_from(origin.transformation, head) for origin in origins):
        raise InvalidProgramError(
            "Cannot close an iteration with a feedback stream that does not originate from said "
            f"iteration: '{origins[0].transformation.name}' reads nothing that comes "
            f"from '{head.name}'. Build it from the stream that iterate() returned."
        )
    for share in _by_partitioning(origins):
        tail = Transformation(name="Iteration Tail", spec=IterationTailSpec(), inputs=(share,))
        head.tails.append(tail)
        feedback.get_execution_environment().program.add_operator(tail)
    return feedback


def _by_partitioning(origins: tuple[Origin, ...]) -> list[tuple[Origin, ...]]:
    """Divide the streams of a union, so that the records of a tail have one partitioning.

    When a loop is rescaled, the partitioning sends the records in it to their new heads.
    """
    shares: dict[object, list[Origin]] = {}
    for origin in origins:
        partitioning = origin.partitioning
        has_selector = partitioning is not None and partitioning.key_selector is not None
        key = id(partitioning) if has_selector else partitioning
        shares.setdefault(key, []).append(origin)
    return [tuple(share) for share in shares.values()]


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


@public_evolving
class IterativeStream(DataStream):
    """A stream with the records that come back to it: the result of ``iterate``. Not in PyFlink.

    Setters such as ``name`` and ``uid`` apply to the loop.

    >>> loop = env.from_collection([5]).iterate(max_wait=100)
    >>> halves = loop.map(lambda number: number // 2)
    >>> again = loop.close_with(halves.filter(lambda number: number > 0))
    >>> sorted(halves.execute_and_collect())
    [0, 1, 2]
    """

    def __init__(self, input_stream: StreamBase, max_wait: int = 0) -> None:
        self._input = input_stream
        self._max_wait = max_wait
        self._head = iteration_head(input_stream.recorded.origins, max_wait)
        super().__init__(
            input_stream.get_execution_environment(),
            (Origin(self._head),),
            input_stream.get_type(),
        )

    def close_with(self, feedback_stream: StreamBase) -> StreamBase:
        """Send the records of a stream back to this one.

        It may be called several times, each with a stream of its own.

        Args:
            feedback_stream: A stream of this stream's records, possibly a union.

        Returns:
            The feedback stream.

        Raises:
            InvalidProgramError: The feedback stream does not originate from this one.
        """
        check_same_environment("close_with", self, feedback_stream)
        return close_loop(self._head, feedback_stream)

    def with_feedback_type(self, feedback_type: TypeInformation) -> ConnectedIterativeStreams:
        """Let records of a different type come back, as the second of two connected streams.

        Args:
            feedback_type: The type of the records that come back.

        >>> class Countdown(CoMapFunction):
        ...     def map1(self, value):
        ...         return len(value)
        ...     def map2(self, value):
        ...         return value - 1
        >>> loop = env.from_collection(["abc"]).iterate(max_wait=100).with_feedback_type(Types.INT())
        >>> counts = loop.map(Countdown(), Types.INT())
        >>> again = loop.close_with(counts.filter(lambda count: count > 0))
        >>> list(counts.execute_and_collect())
        [3, 2, 1, 0]
        """
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


@public_evolving
class ConnectedIterativeStreams(ConnectedStreams):
    """The input as the first stream, and the records that come back as the second. Not in PyFlink.

    >>> class Countdown(CoMapFunction):
    ...     def map1(self, value):
    ...         return len(value)
    ...     def map2(self, value):
    ...         return value - 1
    >>> loop = env.from_collection(["ab"]).iterate(max_wait=100).with_feedback_type(Types.INT())
    >>> counts = loop.map(Countdown(), Types.INT())
    >>> again = loop.close_with(counts.filter(lambda count: count > 0))
    >>> list(counts.execute_and_collect())
    [2, 1, 0]
    """

    def __init__(
        self, input_stream: StreamBase, feedback_type: TypeInformation, max_wait: int
    ) -> None:
        # The head only has to know when the input ends: that takes no repartitioning.
        origins = tuple(replace(one, partitioning=None) for one in input_stream.recorded.origins)
        self._head = iteration_head(origins, max_wait, feedback_only=True)
        environment = input_stream.get_execution_environment()
        super().__init__(
            input_stream, DataStream(environment, (Origin(self._head),), feedback_type)
        )

    def close_with(self, feedback_stream: StreamBase) -> StreamBase:
        """Send the records of a stream back as the second stream.

        Args:
            feedback_stream: A stream that originates from these two.

        Returns:
            The feedback stream.
        """
        check_same_environment("close_with", self.stream1, feedback_stream)
        return close_loop(self._head, feedback_stream)
