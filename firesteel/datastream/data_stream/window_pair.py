"""Windows over two keyed streams, whatever is done with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.function_arguments import as_type, require_instance
from firesteel.datastream.data_stream.stream_pair import two_input_stream
from firesteel.datastream.data_stream.window_settings import WindowSettings
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.window import WindowAssigner
from firesteel.graph.operator_specs import PairedRecords, WindowJoinSpec

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream

__all__ = ["WindowPair"]


class WindowPair(WindowSettings):
    """Assigners, triggers and evictors that look at records get a TaggedUnion, as in Flink."""

    def __init__(
        self, left: KeyedStream, right: KeyedStream, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        super().__init__(left.get_execution_environment(), window_assigner)
        self._left = left
        self._right = right
        self._left_late_tag: OutputTag | None = None
        self._right_late_tag: OutputTag | None = None

    def side_output_left_late_data(self, output_tag: OutputTag) -> Self:
        """Send records of the first stream that are too late to a side output."""
        require_instance("side_output_left_late_data", output_tag, OutputTag)
        self._left_late_tag = output_tag
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> Self:
        """Send records of the second stream that are too late to a side output."""
        require_instance("side_output_right_late_data", output_tag, OutputTag)
        self._right_late_tag = output_tag
        return self

    def _applied(
        self, name: str, function: Any, output_type: TypeInformation | None, *, groups: bool
    ) -> DataStream:
        trigger = self._chosen_trigger()
        left_tag, right_tag = self._left_late_tag, self._right_late_tag
        spec = WindowJoinSpec(
            assigner=self._window_assigner,
            trigger=trigger,
            contents=PairedRecords(self._left.get_type(), self._right.get_type()),
            window_function=function,
            evictor=self._evictor,
            allowed_lateness=self._allowed_lateness,
            late_tag=None if left_tag is None else left_tag.tag_id,
            second_late_tag=None if right_tag is None else right_tag.tag_id,
            groups=groups,
        )
        stream = two_input_stream(
            name, spec, self._left, self._right, as_type("apply", output_type)
        )
        described = f"{self._window_assigner}, {type(trigger).__name__}"
        return stream.set_description(f"{name}({described})")
