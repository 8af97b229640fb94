"""Two streams that wait for their keys: how every join begins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.function_arguments import as_type, key_selector_of
from firesteel.datastream.functions import KeySelector
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import OperatorSpec
from firesteel.graph.transformations import Origin, Transformation

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream
    from firesteel.datastream.data_stream.stream_base import StreamBase

__all__ = ["CrossJoinError", "StreamPair"]

T = TypeVar("T")

# What comes after the keys; asked for too early, it would be a cross join.
_NEED_KEYS = frozenset(
    {"allowed_lateness", "apply", "evictor", "filter", "trigger", "window", "with_ttl"}
)


class CrossJoinError(InvalidProgramError, AttributeError):
    """A join has no condition that says which records belong together."""

    def __init__(self, operation: str, name: str, missing: str) -> None:
        self.operation = operation
        super().__init__(
            f"{operation}: {name}() needs a key condition, and {missing} is missing. A join of every "
            f"record with every other (a cross join) has no key to distribute the streams by, and "
            f"would have to keep and compare all records of both. Say which fields must be equal: "
            f"{operation}(other).where(left_key).equal_to(right_key). To give every record of a small "
            f"stream to all subtasks, use broadcast() and connect()."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return InvalidProgramError, self.args


class _NeedsKeys:
    if not TYPE_CHECKING:  # a type checker shall see that these names are not there

        def __getattr__(self, name: str) -> NoReturn:
            if name in _NEED_KEYS:
                raise CrossJoinError(self._operation, name, self._missing)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )


class StreamPair(_NeedsKeys, ABC, Generic[T]):
    """``where(...).equal_to(...)`` give both streams their keys; subclasses say what follows."""

    _operation: ClassVar[str]
    _missing = "where(...).equal_to(...)"

    def __init__(self, input1: StreamBase, input2: StreamBase) -> None:
        self._input1 = input1
        self._input2 = input2

    def where(
        self,
        key_selector: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> Where[T]:
        """The key of the first stream's records."""
        key_selector_of(f"{self._operation}.where", key_selector)
        return Where(self, key_selector, key_type)

    @abstractmethod
    def _keyed(self, left: KeyedStream, right: KeyedStream) -> T: ...


class Where(_NeedsKeys, Generic[T]):
    """The first stream has its key, the second one waits for its own."""

    _missing = "equal_to(...)"

    def __init__(
        self, pair: StreamPair[T], key_selector: Any, key_type: TypeInformation | None
    ) -> None:
        self._pair = pair
        self._operation = pair._operation
        self._key_selector = key_selector
        self._key_type = key_type

    def equal_to(
        self,
        key_selector: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> T:
        """The key of the second stream's records."""
        key_selector_of(f"{self._operation}.equal_to", key_selector)
        types = [given for given in (self._key_type, key_type) if given is not None]
        if len(types) == 2 and as_type("where", types[0], "key type") != as_type(
            "equal_to", types[1], "key type"
        ):
            raise InvalidProgramError(
                f"{self._operation}: keys of different types are never equal: where() has {types[0]}, "
                f"equal_to() has {types[1]}."
            )
        common = types[0] if types else None
        pair = self._pair
        return pair._keyed(
            pair._input1.key_by(self._key_selector, common),
            pair._input2.key_by(key_selector, common),
        )


def two_input_stream(
    name: str,
    spec: OperatorSpec,
    left: StreamBase,
    right: StreamBase,
    output_type: TypeInformation,
) -> DataStream:
    """The stream of an operator with two inputs."""
    from firesteel.datastream.data_stream.data_stream import DataStream

    transformation = Transformation(
        name=name, spec=spec, inputs=(left._origins, right._origins), output_type=output_type
    )
    environment = left.get_execution_environment()
    environment._add_operator(transformation)
    return DataStream(environment, (Origin(transformation),), output_type)
