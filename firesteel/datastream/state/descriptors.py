"""State descriptors: the name, type and time to live of a state."""

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
    """Return a type after a check. None is any Python object."""
    if type_info is None or isinstance(type_info, TypeInformation):
        return type_info
    hint = " Add parentheses to call the type." if callable(type_info) else ""
    raise TypeError(
        f"The type of the state '{state}' must be a TypeInformation such as Types.INT(), but it is "
        f"{shorten(type_info)}.{hint}"
    )


class StateDescriptor:
    """Base of all descriptors.

    Args:
        name: The name of the state, unique within its operator.
        type_info: The type of its values.

    >>> descriptor = ValueStateDescriptor("count", Types.LONG())
    >>> descriptor.get_name()
    'count'
    >>> descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    """

    def __init__(self, name: str, type_info: TypeInformation) -> None:
        if not name:
            raise ValueError("A state needs a name")
        self.name = name
        self.type_info = _checked(name, type_info)
        self.ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        """Return the name of the state."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let values expire some time after they were last used.

        Args:
            ttl_config: The time, and the accesses that prolong it.
        """
        if not isinstance(ttl_config, StateTtlConfig):
            raise TypeError(
                f"The time to live of the state '{self.name}' must be a StateTtlConfig from "
                f"StateTtlConfig.new_builder(...).build(), but it is {shorten(ttl_config)}"
            )
        self.ttl_config = ttl_config

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.type_info})"


class ValueStateDescriptor(StateDescriptor):
    """Describes a single value per key.

    Args:
        name: The name of the state, unique within its operator.
        value_type_info: The type of the value.

    >>> ValueStateDescriptor("count", Types.LONG())
    ValueStateDescriptor('count', Long)
    """

    def __init__(self, name: str, value_type_info: TypeInformation) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor):
    """Describes a list.

    Args:
        name: The name of the state, unique within its operator.
        elem_type_info: The type of the elements.

    >>> ListStateDescriptor("events", Types.STRING()).element_type_info
    String
    """

    def __init__(self, name: str, elem_type_info: TypeInformation) -> None:
        super().__init__(name, Types.LIST(_checked(name, elem_type_info)))
        self.element_type_info = elem_type_info


class MapStateDescriptor(StateDescriptor):
    """Describes a dictionary, per key or as broadcast state.

    Args:
        name: The name of the state, unique within its operator.
        key_type_info: The type of the keys.
        value_type_info: The type of the values.

    >>> MapStateDescriptor("pages", Types.STRING(), Types.LONG()).key_type_info
    String
    """

    def __init__(
        self, name: str, key_type_info: TypeInformation, value_type_info: TypeInformation
    ) -> None:
        types = _checked(name, key_type_info), _checked(name, value_type_info)
        super().__init__(name, Types.MAP(*types))
        self.key_type_info = key_type_info
        self.value_type_info = value_type_info


class ReducingStateDescriptor(StateDescriptor):
    """Describes a value per key that a function combines with each added value.

    Args:
        name: The name of the state, unique within its operator.
        reduce_function: A callable or ReduceFunction of two values.
        type_info: The type of the values.

    >>> descriptor = ReducingStateDescriptor("largest", max, Types.INT())
    >>> descriptor.get_reduce_function()(1, 2)
    2
    """

    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction | Callable[[Any, Any], Any],
        type_info: TypeInformation,
    ) -> None:
        super().__init__(name, type_info)
        if not callable(reduce_function) and not callable(getattr(reduce_function, "reduce", None)):
            raise TypeError(
                f"The reduce function of state '{name}' must be a ReduceFunction or a callable of "
                f"two values, got {reduce_function!r}"
            )
        self._reduce_function = reduce_function

    def get_reduce_function(self) -> ReduceFunction | Callable[[Any, Any], Any]:
        """Return the function."""
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    """Describes an accumulator per key.

    Args:
        name: The name of the state, unique within its operator.
        agg_function: An AggregateFunction.
        state_type_info: The type of the accumulator.

    >>> class Count(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return 0
    ...     def add(self, value, accumulator):
    ...         return accumulator + 1
    ...     def get_result(self, accumulator):
    ...         return accumulator
    ...     def merge(self, acc_a, acc_b):
    ...         return acc_a + acc_b
    >>> descriptor = AggregatingStateDescriptor("count", Count(), Types.INT())
    >>> descriptor.get_agg_function().add("a", 1)
    2
    """

    def __init__(
        self, name: str, agg_function: AggregateFunction, state_type_info: TypeInformation
    ) -> None:
        from firesteel.datastream.functions.basic import AggregateFunction

        super().__init__(name, state_type_info)
        if not isinstance(agg_function, AggregateFunction):
            raise TypeError(
                f"The aggregate function of state '{name}' must be an AggregateFunction, "
                f"got {agg_function!r}"
            )
        self._agg_function = agg_function

    def get_agg_function(self) -> AggregateFunction:
        """Return the function."""
        return self._agg_function
