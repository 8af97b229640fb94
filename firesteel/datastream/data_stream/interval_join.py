"""IntervalJoin: two keyed streams whose records are joined if they are close in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Self

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.function_arguments import as_type, require_instance
from firesteel.datastream.data_stream.stream_pair import two_input_stream
from firesteel.datastream.functions import ProcessJoinFunction
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.window.arguments import to_millis
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import IntervalJoinSpec

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream

__all__ = ["IntervalJoin", "IntervalJoined"]


class IntervalJoined:
    """The join of a record with those of the other stream within an interval around it."""

    def __init__(self, left: KeyedStream, right: KeyedStream, lower: int, upper: int) -> None:
        self._left = left
        self._right = right
        self._lower = lower
        self._upper = upper
        self._lower_exclusive = False
        self._upper_exclusive = False
        self._left_late_tag: OutputTag | None = None
        self._right_late_tag: OutputTag | None = None

    def lower_bound_exclusive(self) -> Self:
        """Records exactly at the lower bound are not joined."""
        self._lower_exclusive = True
        return self

    def upper_bound_exclusive(self) -> Self:
        """Records exactly at the upper bound are not joined."""
        self._upper_exclusive = True
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> Self:
        """Send late records of the first stream to a side output, instead of dropping them."""
        require_instance("side_output_left_late_data", output_tag, OutputTag)
        self._left_late_tag = output_tag
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> Self:
        """Send late records of the second stream to a side output, instead of dropping them."""
        require_instance("side_output_right_late_data", output_tag, OutputTag)
        self._right_late_tag = output_tag
        return self

    def process(
        self, process_join_function: ProcessJoinFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Call a function with each pair, as soon as both are there."""
        require_instance("process of an interval join", process_join_function, ProcessJoinFunction)
        left_tag, right_tag = self._left_late_tag, self._right_late_tag
        spec = IntervalJoinSpec(
            function=process_join_function,
            lower=self._lower + self._lower_exclusive,
            upper=self._upper - self._upper_exclusive,
            left_type=self._left.get_type(),
            right_type=self._right.get_type(),
            left_late_tag=None if left_tag is None else left_tag.tag_id,
            right_late_tag=None if right_tag is None else right_tag.tag_id,
        )
        stream = two_input_stream(
            "Interval Join", spec, self._left, self._right, as_type("process", output_type)
        )
        return stream.set_description(f"Interval Join({spec.lower} ms to {spec.upper} ms)")


class IntervalJoin:
    """What ``interval_join`` gives, as in Flink's Java API. It needs event time."""

    def __init__(self, stream_one: KeyedStream, stream_two: KeyedStream) -> None:
        self._left = stream_one
        self._right = stream_two

    def in_event_time(self) -> Self:
        """Join by event time, as it always does."""
        return self

    def in_processing_time(self) -> NoReturn:
        raise InvalidProgramError(
            "interval_join joins by event time only, as in Flink: by the clock, the time of a record "
            "is not known before it arrives. Assign timestamps, or use a window join."
        )

    def between(self, lower_bound: Time | Duration, upper_bound: Time | Duration) -> IntervalJoined:
        """Join with records whose time is from ``lower_bound`` to ``upper_bound`` after this one's.

        Both may be negative, and both are included.
        """
        lower = to_millis(lower_bound, "The lower bound")
        upper = to_millis(upper_bound, "The upper bound")
        if lower > upper:
            raise InvalidProgramError(
                f"The lower bound of an interval join must not be above the upper one, but "
                f"{lower} ms > {upper} ms."
            )
        return IntervalJoined(self._left, self._right, lower, upper)
