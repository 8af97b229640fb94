"""Reads config.yaml, Flink's configuration file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from firesteel.common.configuration import Configuration
from firesteel.config.check import check_keys
from firesteel.config.options import ALL_OPTIONS
from firesteel.config.values import MAP, format_value
from firesteel.errors import ConfigurationError

__all__ = [
    "CONF_DIR_VARIABLES",
    "find_config_file",
    "load_configuration",
    "override",
    "read_config_file",
    "set_command_line",
]

CONF_DIR_VARIABLES = ("FIRESTEEL_CONF_DIR", "FLINK_CONF_DIR")
_FILE_NAME = "config.yaml"
# Nested entries of these keys are the value of the setting, not further keys.
# Settings of the command line that runs a program in this process.
_command_line = Configuration()
_MAP_KEYS = frozenset(option.key for option in ALL_OPTIONS if option.type is MAP)


def load_configuration(
    overrides: Configuration | None = None,
    path: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Configuration:
    """Return the settings of the file. ``overrides`` take precedence. All keys are checked.

    Without ``path``, the file is in the directory that FIRESTEEL_CONF_DIR or FLINK_CONF_DIR names.
    Settings of the command line come before those of the file.
    """
    file = Path(path) if path is not None else find_config_file(environ)
    configuration = read_config_file(file) if file is not None else Configuration()
    override(configuration, _command_line)
    if overrides is not None:
        override(configuration, overrides)
    check_keys(configuration.key_set())
    return configuration


def set_command_line(settings: Configuration) -> None:
    """Set the settings of the command line that has started this process."""
    _command_line.add_all(settings)


def override(configuration: Configuration, overrides: Configuration) -> None:
    """Add ``overrides``. A setting replaces one that uses a deprecated key, and vice versa."""
    for option in ALL_OPTIONS:
        if overrides.contains(option):
            for key in (option.key, *option.deprecated_keys):
                configuration.remove_config(key)
    configuration.add_all(overrides)


def find_config_file(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the config.yaml of the directory that the environment names, or None.

    As in Flink, that directory and its file must exist. Otherwise a misspelled path would run the
    program with different settings.
    """
    variables = os.environ if environ is None else environ
    for variable in CONF_DIR_VARIABLES:
        directory = variables.get(variable)
        if directory:
            return _config_file_of(variable, Path(directory))
    return None


def _config_file_of(variable: str, directory: Path) -> Path:
    file = directory / _FILE_NAME
    if file.is_file():
        return file
    what = f"{file} does not exist" if directory.is_dir() else f"{directory} is not a directory"
    raise ConfigurationError(
        f"{variable} names the directory of {_FILE_NAME}, but {what}. Correct the variable, or "
        "unset it to run without a configuration file."
    )


def read_config_file(path: str | os.PathLike[str]) -> Configuration:
    """Read one file. Keys may be nested, or written with dots."""
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"Cannot read {path}: {error.strerror}.") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path} is not valid YAML: {error}") from error
    if content is None:
        return Configuration()
    if not isinstance(content, dict):
        raise ConfigurationError(
            f"{path} must contain keys and values, for example 'parallelism.default: 4'."
        )
    configuration = Configuration()
    for key, value in _flatten(content, ""):
        configuration.set_string(key, format_value(value))
    return configuration


def _flatten(content: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and key not in _MAP_KEYS:
            yield from _flatten(value, f"{key}.")
        elif value is not None:  # a key without a value is not set
            yield key, value
