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
    """A declared setting: key, type, default value and description.

    Applications declare settings with ``ConfigOptions``. ``Configuration.get`` reads them.

    >>> port = ConfigOptions.key("application.port").int_type().default_value(8080)
    >>> port.key, port.default
    ('application.port', 8080)
    """

    key: str
    type: ValueType[Any]
    default: T
    description: str = ""
    deprecated_keys: tuple[str, ...] = ()
    is_used: bool = True
    """False for a key of Flink that is read and checked, but has no effect yet."""

    def parse(self, value: Any) -> T:
        """Return a value converted to the type of the setting.

        Args:
            value: A typed value, or text as in a configuration file.

        Raises:
            ConfigurationError: The value has the wrong type.

        >>> port = ConfigOptions.key("application.port").int_type().default_value(8080)
        >>> port.parse("9090")
        9090
        """
        try:
            parsed: T = self.type.parse(value)
        except ValueError as error:
            raise ConfigurationError(f"{self.key}: {error}, got {value!r}.", key=self.key) from None
        return parsed

    def default_text(self) -> str:
        """Return the default value as the manual shows it.

        >>> verbose = ConfigOptions.key("application.verbose").boolean_type().default_value(False)
        >>> verbose.default_text()
        'false'
        """
        return "none" if self.default is None else format_value(self.default)
