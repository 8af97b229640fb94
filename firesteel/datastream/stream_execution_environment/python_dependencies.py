"""The user's own files and requirements, kept in Flink's configuration keys.

Flink separates entries with a comma, and the two parts of an entry with a hash sign.
"""

from __future__ import annotations

from firesteel.common.configuration import Configuration
from firesteel.config import options
from firesteel.config.option import Option
from firesteel.graph.job_settings import PythonRequirements

_ENTRIES = ","
_PARTS = "#"


def add_file(configuration: Configuration, file_path: str) -> None:
    """A file that was added last comes first on the path."""
    _set(configuration, options.PYTHON_FILES, [file_path, *files(configuration)])


def files(configuration: Configuration) -> tuple[str, ...]:
    return tuple(_entries(configuration, options.PYTHON_FILES))


def set_requirements(configuration: Configuration, path: str, cache_directory: str | None) -> None:
    configuration.set(options.PYTHON_REQUIREMENTS, _joined(path, cache_directory))


def requirements(configuration: Configuration) -> PythonRequirements | None:
    entry = configuration.get_optional(options.PYTHON_REQUIREMENTS)
    return None if entry is None else PythonRequirements(*_split(entry))


def _entries(configuration: Configuration, option: Option[str | None]) -> list[str]:
    text = configuration.get_optional(option) or ""
    return [entry.strip() for entry in text.split(_ENTRIES) if entry.strip()]


def _set(configuration: Configuration, option: Option[str | None], entries: list[str]) -> None:
    configuration.set(option, _ENTRIES.join(entries))


def _joined(first: str, second: str | None) -> str:
    return first if second is None else f"{first}{_PARTS}{second}"


def _split(entry: str) -> tuple[str, str | None]:
    first, separator, second = entry.partition(_PARTS)
    return first, second if separator else None
