"""Declarations of custom settings, with PyFlink's builder."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from firesteel.config.option import Option as ConfigOption
from firesteel.config.values import BOOLEAN, DOUBLE, INT, STRING, ValueType

__all__ = ["ConfigOption", "ConfigOptions"]

T = TypeVar("T")


class ConfigOptions:
    """Starts the declaration of a setting.

    >>> workers = ConfigOptions.key("application.workers").int_type().default_value(100)
    >>> configuration = Configuration()
    >>> configuration.get(workers)
    100
    >>> configuration.set(workers, 8).get(workers)
    8
    """

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Start the declaration of a setting.

        Args:
            key: The name of the setting in a Configuration and in configuration files.

        Returns:
            A builder that asks for the type.

        >>> ConfigOptions.key("application.name").string_type().no_default_value().key
        'application.name'
        """
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """The second step of a declaration: choose the type of the value.

        >>> retries = ConfigOptions.key("application.retries").int_type().default_value(3)
        >>> offset = ConfigOptions.key("application.offset").long_type().default_value(1 << 40)
        >>> ratio = ConfigOptions.key("application.ratio").float_type().default_value(0.5)
        >>> limit = ConfigOptions.key("application.limit").double_type().default_value(0.99)
        >>> verbose = ConfigOptions.key("application.verbose").boolean_type().default_value(False)
        >>> name = ConfigOptions.key("application.name").string_type().default_value("orders")
        >>> configuration = Configuration.from_dict({"application.verbose": "true"})
        >>> configuration.get(verbose), configuration.get(ratio), configuration.get(name)
        (True, 0.5, 'orders')
        """

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """Declare a value that is True or False. Text is read as ``true`` or ``false``."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, BOOLEAN)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Declare an int. As in Python, its size has no limit."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, INT)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Declare an int. This is the same as ``int_type``."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, INT)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Declare a float. This is the same as ``double_type``."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, DOUBLE)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Declare a float of 64 bits."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, DOUBLE)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """Declare a text."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, STRING)

    class TypedConfigOptionBuilder(Generic[T]):
        """The last step of a declaration: choose the default value.

        >>> port = ConfigOptions.key("application.port").int_type().default_value(8080)
        >>> host = ConfigOptions.key("application.host").string_type().no_default_value()
        >>> port.default, host.default
        (8080, None)
        """

        def __init__(self, key: str, value_type: ValueType[Any]) -> None:
            self._key = key
            self._type = value_type

        def default_value(self, value: T) -> ConfigOption[T]:
            """Finish the declaration with a default.

            Args:
                value: The value of the setting where a configuration does not set it.
            """
            return ConfigOption(self._key, self._type, value)

        def no_default_value(self) -> ConfigOption[T | None]:
            """Finish the declaration without a default. An unset value reads as None."""
            return ConfigOption(self._key, self._type, None)
