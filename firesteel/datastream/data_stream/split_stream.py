"""SplitStream: Flink's split and select, which PyFlink never had."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from firesteel.datastream.data_stream.function_arguments import require_function_or_callable
from firesteel.datastream.functions import OutputSelector
from firesteel.errors import InvalidProgramError, shorten
from firesteel.graph.operator_specs import SelectSpec

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream

__all__ = ["SplitStream"]


class SplitStream:
    """A stream whose records have named outputs. A record may go to several, or to none."""

    def __init__(
        self,
        stream: DataStream,
        output_selector: Callable[[Any], Iterable[str] | str] | OutputSelector,
    ) -> None:
        require_function_or_callable("split", output_selector, OutputSelector)
        self._stream = stream
        self._selector = output_selector

    def select(self, *output_names: str) -> DataStream:
        """The records that go to at least one of the named outputs, each once."""
        if not output_names:
            raise InvalidProgramError("select needs the name of at least one output.")
        for name in output_names:
            if not isinstance(name, str):
                raise InvalidProgramError(f"select expects names, but got {shorten(name)}.")
        names = frozenset(output_names)
        if isinstance(self._selector, OutputSelector):
            spec = SelectSpec(self._selector.select, names, (self._selector,))
        else:
            spec = SelectSpec(self._selector, names)
        return self._stream._apply("Select", spec, self._stream.get_type())
