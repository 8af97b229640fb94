"""KeyedOutput: a keyed stream whose aggregations emit less than one result a record."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.data_stream.keyed_aggregations import KeyedAggregations
from firesteel.datastream.data_stream.output_modes import APPEND, check_output_mode
from firesteel.graph.operator_specs import KeyedAggregationSpec

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream

__all__ = ["KeyedOutput"]


class KeyedOutput(KeyedAggregations):
    """What ``key_by(...).output_mode(...)`` gives. Not in PyFlink."""

    def __init__(self, keyed_stream: KeyedStream, mode: str) -> None:
        self._keyed_stream = keyed_stream
        self._mode = check_output_mode(mode)

    def get_type(self) -> TypeInformation:
        return self._keyed_stream.get_type()

    def _aggregated(
        self, name: str, spec: KeyedAggregationSpec, result_type: TypeInformation
    ) -> DataStream:
        if self._mode != APPEND:
            result_type = Types.TUPLE([self._keyed_stream._key_type, result_type])
        return self._keyed_stream._apply(name, replace(spec, output_mode=self._mode), result_type)
