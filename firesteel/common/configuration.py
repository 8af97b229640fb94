"""Configuration, the store of settings."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, TypeVar

from firesteel.config.option import Option
from firesteel.config.sensitive import hide_secrets
from firesteel.config.values import BOOLEAN, DOUBLE, INT, ValueType, format_value, parse_list
from firesteel.errors import ConfigurationError
from firesteel.stability import public_evolving

__all__ = ["Configuration"]

T = TypeVar("T")


class Configuration:
    """A map from keys to settings.

    A value can be set with its type or as text. Each getter converts it to the type it returns.

    Args:
        other: A configuration to copy.

    >>> configuration = Configuration()
    >>> configuration.set_string("parallelism.default", "4").get_integer("parallelism.default", 1)
    4
    >>> env = StreamExecutionEnvironment.get_execution_environment(configuration)
    >>> env.get_parallelism()
    4
    """

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, Any] = {}
        if other is not None:
            self.add_all(other)

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        """Create a configuration from a dict.

        Args:
            map: Keys and values. Values are typed, or text as in a configuration file.

        >>> Configuration.from_dict({"parallelism.default": "4", "application.verbose": True})
        Configuration({'parallelism.default': '4', 'application.verbose': 'true'})
        """
        configuration = cls()
        configuration._values.update(map)
        return configuration

    @public_evolving
    def get(self, option: Option[T]) -> T:
        """Return the value of a declared setting. Not in PyFlink.

        Args:
            option: The declaration, from ``ConfigOptions``.

        Returns:
            The value, or the default of the declaration if the setting is not set.

        >>> port = ConfigOptions.key("application.port").int_type().default_value(8080)
        >>> configuration = Configuration()
        >>> configuration.get(port)
        8080
        >>> configuration.set_string("application.port", "9090").get(port)
        9090
        """
        value = self._find(option)
        return option.default if value is None else option.parse(value)

    @public_evolving
    def get_optional(self, option: Option[T]) -> T | None:
        """Return the value of a declared setting, or None if it is not set. Not in PyFlink.

        Args:
            option: The declaration, from ``ConfigOptions``.

        >>> port = ConfigOptions.key("application.port").int_type().default_value(8080)
        >>> print(Configuration().get_optional(port))
        None
        """
        value = self._find(option)
        return None if value is None else option.parse(value)

    @public_evolving
    def set(self, option: Option[T], value: T) -> Configuration:
        """Set a declared setting. Not in PyFlink.

        Args:
            option: The declaration, from ``ConfigOptions``.
            value: A value of the declared type.

        Raises:
            ConfigurationError: The value has a different type.

        >>> port = ConfigOptions.key("application.port").int_type().default_value(8080)
        >>> Configuration().set(port, "high")
        Traceback (most recent call last):
        firesteel.errors.ConfigurationError: application.port: ... got 'high'.
        """
        option.parse(value)
        self._values[option.key] = value
        return self

    @public_evolving
    def contains(self, option: Option[Any]) -> bool:
        """Return True if a declared setting is set, by its key or a deprecated key. Not in PyFlink.

        Args:
            option: The declaration, from ``ConfigOptions``.

        >>> port = ConfigOptions.key("application.port").int_type().default_value(8080)
        >>> Configuration().contains(port), Configuration().set(port, 9090).contains(port)
        (False, True)
        """
        return self._find(option) is not None

    def _find(self, option: Option[Any]) -> Any:
        for key in (option.key, *option.deprecated_keys):
            if self._values.get(key) is not None:
                return self._values[key]
        return None

    def get_string(self, key: str, default_value: str) -> str:
        """Return a setting as text.

        Args:
            key: The key of the setting.
            default_value: The result if the setting is not set.

        >>> configuration = Configuration().set_boolean("application.verbose", True)
        >>> configuration.get_string("application.verbose", "")
        'true'
        """
        value = self._values.get(key)
        return default_value if value is None else format_value(value)

    def set_string(self, key: str, value: str) -> Configuration:
        """Set a setting to a text.

        Args:
            key: The key of the setting.
            value: The text.

        Returns:
            This configuration.

        >>> configuration = Configuration().set_string("application.name", "orders")
        >>> configuration.get_string("application.name", "")
        'orders'
        """
        self._values[key] = value
        return self

    def get_integer(self, key: str, default_value: int) -> int:
        """Return a setting as an int.

        Args:
            key: The key of the setting.
            default_value: The result if the setting is not set.

        Raises:
            ConfigurationError: The value is not an int.

        >>> configuration = Configuration.from_dict({"application.port": "9090"})
        >>> configuration.get_integer("application.port", 8080)
        9090
        """
        return self._typed(key, INT, default_value)

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set a setting to an int.

        Args:
            key: The key of the setting.
            value: The number.

        Returns:
            This configuration.

        >>> Configuration().set_integer("parallelism.default", 4)
        Configuration({'parallelism.default': '4'})
        """
        self._values[key] = value
        return self

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """Return a setting as True or False.

        Args:
            key: The key of the setting.
            default_value: The result if the setting is not set.

        Raises:
            ConfigurationError: The value is neither a bool nor ``true`` or ``false``.

        >>> configuration = Configuration.from_dict({"application.verbose": "true"})
        >>> configuration.get_boolean("application.verbose", False)
        True
        """
        return self._typed(key, BOOLEAN, default_value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set a setting to True or False.

        Args:
            key: The key of the setting.
            value: The value.

        Returns:
            This configuration.

        >>> Configuration().set_boolean("application.verbose", True)
        Configuration({'application.verbose': 'true'})
        """
        self._values[key] = value
        return self

    def get_float(self, key: str, default_value: float) -> float:
        """Return a setting as a float.

        Args:
            key: The key of the setting.
            default_value: The result if the setting is not set.

        Raises:
            ConfigurationError: The value is not a number.

        >>> configuration = Configuration.from_dict({"application.ratio": "0.25"})
        >>> configuration.get_float("application.ratio", 1.0)
        0.25
        """
        return self._typed(key, DOUBLE, float(default_value))

    def set_float(self, key: str, value: float) -> Configuration:
        """Set a setting to a float.

        Args:
            key: The key of the setting.
            value: The number.

        Returns:
            This configuration.

        >>> Configuration().set_float("application.ratio", 0.25)
        Configuration({'application.ratio': '0.25'})
        """
        self._values[key] = float(value)
        return self

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """Return a setting as bytes.

        Args:
            key: The key of the setting.
            default_value: The result if the setting is not set.

        Raises:
            ConfigurationError: The value is not bytes.

        >>> configuration = Configuration().set_bytearray("application.salt", bytearray(b"pepper"))
        >>> configuration.get_bytearray("application.salt", bytearray())
        bytearray(b'pepper')
        """
        value = self._values.get(key)
        if value is None:
            return bytearray(default_value)
        if not isinstance(value, bytes | bytearray):
            raise ConfigurationError(f"{key}: expected bytes, got {value!r}.", key=key)
        return bytearray(value)

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Set a setting to bytes.

        Args:
            key: The key of the setting.
            value: The bytes. The configuration copies them.

        Returns:
            This configuration.

        >>> configuration = Configuration().set_bytearray("application.salt", bytearray(b"pepper"))
        >>> configuration.contains_key("application.salt")
        True
        """
        self._values[key] = bytes(value)
        return self

    def _typed(self, key: str, value_type: ValueType[T], default_value: T) -> T:
        value = self._values.get(key)
        if value is None:
            return default_value
        option: Option[T] = Option(key, value_type, default_value)
        return option.parse(value)

    def key_set(self) -> builtins.set[str]:  # the method set() hides the plain name
        """Return the keys of all settings.

        >>> configuration = Configuration.from_dict({"application.port": 9090, "verbose": True})
        >>> sorted(configuration.key_set())
        ['application.port', 'verbose']
        """
        return builtins.set(self._values)

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Add all settings to a dict. Values keep their type.

        Args:
            target_dict: The dict to change.

        >>> target = {"application.host": "localhost"}
        >>> Configuration().set_integer("application.port", 9090).add_all_to_dict(target)
        >>> target
        {'application.host': 'localhost', 'application.port': 9090}
        """
        target_dict.update(self._values)

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Copy all settings of a different configuration into this one.

        Args:
            other: The configuration to copy from.
            prefix: A text to put before each key.

        Returns:
            This configuration.

        >>> other = Configuration().set_integer("port", 9090)
        >>> Configuration().add_all(other, prefix="application.")
        Configuration({'application.port': '9090'})
        """
        for key, value in other._values.items():
            self._values[f"{prefix or ''}{key}"] = value
        return self

    def contains_key(self, key: str) -> bool:
        """Return True if a setting is set.

        Args:
            key: The key of the setting.

        >>> Configuration().set_integer("application.port", 9090).contains_key("application.port")
        True
        """
        return key in self._values

    def to_dict(self) -> dict[str, str]:
        """Return all settings as text. ``add_all_to_dict`` keeps the types of values.

        >>> Configuration().set_integer("application.port", 9090).to_dict()
        {'application.port': '9090'}
        """
        return {key: format_value(value) for key, value in self._values.items()}

    def remove_config(self, key: str) -> bool:
        """Remove a setting.

        Args:
            key: The key of the setting.

        Returns:
            False if the setting was not set.

        >>> configuration = Configuration().set_integer("application.port", 9090)
        >>> configuration.remove_config("application.port"), configuration
        (True, Configuration({}))
        """
        return self._values.pop(key, None) is not None

    @staticmethod
    def parse_list_value(value: str) -> list[str]:
        r"""Return the elements of a list in a text.

        Args:
            value: A list with semicolons, such as ``a;b``, or a YAML list, such as ``[a, b]`` or a
                line ``- a`` per element.

        >>> Configuration.parse_list_value("a;b"), Configuration.parse_list_value("[a, b]")
        (['a', 'b'], ['a', 'b'])
        >>> Configuration.parse_list_value("- a\n- b")
        ['a', 'b']
        """
        return parse_list(value) if value else []

    def __deepcopy__(self, memo: dict[int, Any]) -> Configuration:
        return Configuration(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def _shown(self) -> dict[str, str]:
        """All settings as text, without secrets."""
        return hide_secrets(self.to_dict())

    def __str__(self) -> str:
        """Return the settings as Flink prints them. Values of secret settings are hidden.

        >>> print(Configuration.from_dict({"parallelism.default": "4", "s3.secret-key": "abc"}))
        {parallelism.default=4, s3.secret-key=******}
        """
        return f"{{{', '.join(f'{key}={text}' for key, text in self._shown().items())}}}"

    def __repr__(self) -> str:
        return f"Configuration({self._shown()!r})"
