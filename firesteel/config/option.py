"""The declaration of one setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from firesteel.config.values import ValueType, format_value
from firesteel.errors import ConfigurationError

__all__ = ["Option"]

T = TypeVar("T")


@dataclass(frozen=True)
class Option(Generic[T]):
    """A setting: key, type, default and text. Declared once, read through Configuration.get."""

    key: str
    type: ValueType[Any]
    default: T
    description: str = ""
    deprecated_keys: tuple[str, ...] = ()
    is_used: bool = True
    """False for a key of Flink that is read and checked, but has no effect yet."""

    def parse(self, value: Any) -> T:
        """Return the typed value, or raise ConfigurationError."""
        try:
            parsed: T = self.type.parse(value)
        except ValueError as error:
            raise ConfigurationError(f"{self.key}: {error}, got {value!r}.", key=self.key) from None
        return parsed

    def default_text(self) -> str:
        """The default as the manual shows it."""
        return "none" if self.default is None else format_value(self.default)
