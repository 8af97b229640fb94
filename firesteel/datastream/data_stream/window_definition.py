"""What windowed streams with a key and without one have in common: what is said about windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.data_stream.function_arguments import ProgramTypeError, require_instance
from firesteel.datastream.data_stream.output_modes import (
    APPEND,
    COMPLETE,
    UPDATE,
    check_output_mode,
)
from firesteel.datastream.data_stream.window_settings import WindowSettings
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.window import GlobalWindows, WindowAssigner
from firesteel.datastream.window.assigners.count_windows import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
)
from firesteel.errors import InvalidProgramError, shorten
from firesteel.graph.operator_specs import AggregatedField, WindowContents, WindowSpec
from firesteel.graph.transformations import Transformation

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["WindowDefinition"]

# Windows that never become final by themselves.
_ENDLESS = (GlobalWindows, CountTumblingWindowAssigner, CountSlidingWindowAssigner)


class WindowDefinition(WindowSettings):
    """The operators of subclasses make a stream of it."""

    def __init__(
        self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        super().__init__(keyed_stream.get_execution_environment(), window_assigner)
        self._keyed_stream = keyed_stream
        self._late_data_output_tag: OutputTag | None = None
        self._output_mode: str | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._environment

    def get_input_type(self) -> TypeInformation:
        """The type of the records that fall into windows."""
        return self._keyed_stream.get_type()

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Send records that are too late to a side output, instead of dropping them."""
        require_instance("side_output_late_data", output_tag, OutputTag)
        self._late_data_output_tag = output_tag
        return self

    def output_mode(self, mode: str) -> Self:
        """Choose which results an aggregation emits, in Spark's words. Not in PyFlink.

        - ``append``: one result of each key and window, once it is final;
        - ``update``: at each firing what has changed, as ``((key, window), result)``, for sinks
          that replace by key;
        - ``complete``: at each firing the whole table of results, as ``((key, window), result)``.
        """
        self._output_mode = check_output_mode(mode)
        return self

    # -- helpers -------------------------------------------------------------------------------

    def _aggregate_field(self, kind: str, position: object) -> DataStream:
        if not isinstance(position, int | str) or isinstance(position, bool):
            raise ProgramTypeError(
                f"{kind}: the field must be an int (its position) or a str (its name), but it is "
                f"{shorten(position)}."
            )
        contents = AggregatedField(kind, position, self.get_input_type())
        return self._windowed(contents, None, self.get_input_type(), kind)

    def _windowed(
        self,
        contents: WindowContents,
        window_function: Any,
        output_type: TypeInformation,
        *described: object,
    ) -> DataStream:
        assigner, trigger = self._window_assigner, self._chosen_trigger()
        self._check(contents, window_function)
        tag = self._late_data_output_tag
        spec = WindowSpec(
            assigner=assigner,
            trigger=trigger,
            contents=contents,
            window_function=window_function,
            evictor=self._evictor,
            allowed_lateness=self._allowed_lateness,
            late_tag=None if tag is None else tag.tag_id,
            output_mode=self._output_mode,
        )
        name = type(assigner).__name__
        functions = ", ".join(_name(function) for function in described if function is not None)
        if self._output_mode in (UPDATE, COMPLETE):
            # ((key, window), result)
            output_type = Types.PICKLED_BYTE_ARRAY()
        stream = self._keyed_stream._apply(name, spec, output_type)
        stream.set_description(f"Window({assigner}, {type(trigger).__name__}, {functions})")
        self._finish(stream._operator("window"))
        return stream

    def _finish(self, operator: Transformation) -> None:
        """What else is to be said about the operator."""

    def _check(self, contents: WindowContents, window_function: Any) -> None:
        assigner, mode = self._window_assigner, self._output_mode
        if mode == APPEND and isinstance(assigner, _ENDLESS):
            raise InvalidProgramError(
                f"output_mode('append') waits until a window is final, which one of {assigner} "
                f"never is. Use time windows, or another mode."
            )
        if mode in (UPDATE, COMPLETE) and (
            window_function is not None or not contents.is_aggregate
        ):
            raise InvalidProgramError(
                f"output_mode('{mode}') needs one result for each key and window: use reduce, "
                f"aggregate, sum, min, max, min_by or max_by without a window function."
            )


def _name(function: object) -> str:
    return function if isinstance(function, str) else type(function).__name__
