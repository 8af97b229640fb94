"""The store of settings."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, TypeVar

from firesteel.config.option import Option
from firesteel.config.values import BOOLEAN, DOUBLE, INT, ValueType, format_value, parse_list
from firesteel.errors import ConfigurationError

__all__ = ["Configuration"]

T = TypeVar("T")


class Configuration:
    """Keys and values. Values may be set typed or as text, and are read as either.

    >>> Configuration().set_string("parallelism.default", "4").get_integer("parallelism.default", 1)
    4
    """

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, Any] = {} if other is None else dict(other._values)

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        configuration = cls()
        configuration._values.update(map)
        return configuration

    def get(self, option: Option[T]) -> T:
        """Return the value of a declared setting, or its default (beyond PyFlink)."""
        value = self._find(option)
        return option.default if value is None else option.parse(value)

    def get_optional(self, option: Option[T]) -> T | None:
        """Return the value of a declared setting, or None if it is not set."""
        value = self._find(option)
        return None if value is None else option.parse(value)

    def set(self, option: Option[T], value: T) -> Configuration:
        """Set a declared setting; a value that does not fit is an error at once."""
        option.parse(value)
        self._values[option.key] = value
        return self

    def contains(self, option: Option[Any]) -> bool:
        """Whether a declared setting is set, under its key or an older one."""
        return self._find(option) is not None

    def _find(self, option: Option[Any]) -> Any:
        for key in (option.key, *option.deprecated_keys):
            if self._values.get(key) is not None:
                return self._values[key]
        return None

    def get_string(self, key: str, default_value: str) -> str:
        value = self._values.get(key)
        return default_value if value is None else format_value(value)

    def set_string(self, key: str, value: str) -> Configuration:
        self._values[key] = value
        return self

    def get_integer(self, key: str, default_value: int) -> int:
        return self._typed(key, INT, default_value)

    def set_integer(self, key: str, value: int) -> Configuration:
        self._values[key] = value
        return self

    def get_boolean(self, key: str, default_value: bool) -> bool:
        return self._typed(key, BOOLEAN, default_value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        self._values[key] = value
        return self

    def get_float(self, key: str, default_value: float) -> float:
        return self._typed(key, DOUBLE, float(default_value))

    def set_float(self, key: str, value: float) -> Configuration:
        self._values[key] = float(value)
        return self

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        value = self._values.get(key)
        if value is None:
            return bytearray(default_value)
        if not isinstance(value, bytes | bytearray):
            raise ConfigurationError(f"{key}: expected bytes, got {value!r}.", key=key)
        return bytearray(value)

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        self._values[key] = bytes(value)
        return self

    def _typed(self, key: str, value_type: ValueType[T], default_value: T) -> T:
        value = self._values.get(key)
        if value is None:
            return default_value
        option: Option[T] = Option(key, value_type, default_value)
        return option.parse(value)

    def key_set(self) -> builtins.set[str]:  # the method set() hides the plain name
        return builtins.set(self._values)

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Add the settings to a dict, as text."""
        target_dict.update(self.to_dict())

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Take over the settings of another configuration, with ``prefix`` before each key."""
        for key, value in other._values.items():
            self._values[f"{prefix or ''}{key}"] = value
        return self

    def contains_key(self, key: str) -> bool:
        return key in self._values

    def to_dict(self) -> dict[str, str]:
        """Return all settings as text."""
        return {key: format_value(value) for key, value in self._values.items()}

    def remove_config(self, key: str) -> bool:
        """Remove a setting; False if it was not set."""
        return self._values.pop(key, None) is not None

    @staticmethod
    def parse_list_value(value: str) -> list[str]:
        """Read a list, written as ``a;b`` or as YAML."""
        return parse_list(value) if value else []

    def __deepcopy__(self, memo: dict[int, Any]) -> Configuration:
        return Configuration(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def __str__(self) -> str:
        return str(self.to_dict())

    def __repr__(self) -> str:
        return f"Configuration({self.to_dict()!r})"
