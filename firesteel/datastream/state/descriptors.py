"""A state's name, type and time to live. Plain data: the backends create what is described here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.state.time_to_live import StateTtlConfig
from firesteel.errors import shorten

if TYPE_CHECKING:
    # Functions know the state classes through their runtime context, so this way round is lazy.
    from firesteel.datastream.functions.basic import AggregateFunction, ReduceFunction


def _checked(state: str, type_info: Any) -> Any:
    """None is any Python object."""
    if type_info is None or isinstance(type_info, TypeInformation):
        return type_info
    hint = " Types are called: write the parentheses." if callable(type_info) else ""
    raise TypeError(
        f"The type of the state '{state}' must be a TypeInformation such as Types.INT(), but it is "
        f"{shorten(type_info)}.{hint}"
    )


class StateDescriptor:
    """What all descriptors share."""

    def __init__(self, name: str, type_info: TypeInformation) -> None:
        if not name:
            raise ValueError("A state needs a name")
        self.name = name
        self.type_info = _checked(name, type_info)
        self.ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        if not isinstance(ttl_config, StateTtlConfig):
            raise TypeError(
                f"The time to live of the state '{self.name}' must be a StateTtlConfig, as "
                f"StateTtlConfig.new_builder(...).build() gives, but it is {shorten(ttl_config)}"
            )
        self.ttl_config = ttl_config

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.type_info})"


class ValueStateDescriptor(StateDescriptor):
    def __init__(self, name: str, value_type_info: TypeInformation) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor):
    def __init__(self, name: str, elem_type_info: TypeInformation) -> None:
        super().__init__(name, Types.LIST(_checked(name, elem_type_info)))
        self.element_type_info = elem_type_info


class MapStateDescriptor(StateDescriptor):
    def __init__(
        self, name: str, key_type_info: TypeInformation, value_type_info: TypeInformation
    ) -> None:
        types = _checked(name, key_type_info), _checked(name, value_type_info)
        super().__init__(name, Types.MAP(*types))
        self.key_type_info = key_type_info
        self.value_type_info = value_type_info


class ReducingStateDescriptor(StateDescriptor):
    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction | Callable[[Any, Any], Any],
        type_info: TypeInformation,
    ) -> None:
        super().__init__(name, type_info)
        if not callable(reduce_function) and not callable(getattr(reduce_function, "reduce", None)):
            raise TypeError(
                f"The reduce function of state '{name}' is a ReduceFunction or a callable of two "
                f"values, not {reduce_function!r}"
            )
        self._reduce_function = reduce_function

    def get_reduce_function(self) -> ReduceFunction | Callable[[Any, Any], Any]:
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    def __init__(
        self, name: str, agg_function: AggregateFunction, state_type_info: TypeInformation
    ) -> None:
        from firesteel.datastream.functions.basic import AggregateFunction

        super().__init__(name, state_type_info)
        if not isinstance(agg_function, AggregateFunction):
            raise TypeError(
                f"The aggregate function of state '{name}' is an AggregateFunction, "
                f"not {agg_function!r}"
            )
        self._agg_function = agg_function

    def get_agg_function(self) -> AggregateFunction:
        return self._agg_function
