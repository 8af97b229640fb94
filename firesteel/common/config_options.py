"""Declare settings of your own, the way PyFlink does."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from firesteel.config.option import Option as ConfigOption
from firesteel.config.values import BOOLEAN, DOUBLE, INT, STRING, ValueType

__all__ = ["ConfigOption", "ConfigOptions"]

T = TypeVar("T")


class ConfigOptions:
    """Starts the declaration of a setting.

    >>> ConfigOptions.key("application.workers").int_type().default_value(100).default
    100
    """

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """Knows the key; asks for the type."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, BOOLEAN)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, INT)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, INT)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, DOUBLE)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, DOUBLE)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, STRING)

    class TypedConfigOptionBuilder(Generic[T]):
        """Knows key and type; asks for the default."""

        def __init__(self, key: str, value_type: ValueType[Any]) -> None:
            self._key = key
            self._type = value_type

        def default_value(self, value: T) -> ConfigOption[T]:
            return ConfigOption(self._key, self._type, value)

        def no_default_value(self) -> ConfigOption[T | None]:
            return ConfigOption(self._key, self._type, None)
