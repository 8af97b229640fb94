"""The user's own files and requirements, kept in Flink's configuration keys.

Flink separates entries with a comma, and the two parts of an entry with a hash sign.
"""

from __future__ import annotations

from pathlib import PurePath

from firesteel.common.configuration import Configuration
from firesteel.config import options
from firesteel.config.option import Option
from firesteel.errors import ConfigurationError, InvalidProgramError
from firesteel.graph.settings import PythonArchive, PythonRequirements

_ENTRIES = ","
_PARTS = "#"


def add_file(configuration: Configuration, file_path: str) -> None:
    """A file that was added last comes first on the path."""
    _set(configuration, options.PYTHON_FILES, [file_path, *files(configuration)])


def files(configuration: Configuration) -> tuple[str, ...]:
    return tuple(_entries(configuration, options.PYTHON_FILES))


def add_archive(configuration: Configuration, path: str, target: str | None) -> None:
    _check_archive(path, target)
    entries = _entries(configuration, options.PYTHON_ARCHIVES)
    _set(configuration, options.PYTHON_ARCHIVES, [*entries, _joined(path, target)])


def archives(configuration: Configuration) -> tuple[PythonArchive, ...]:
    """An archive without a target becomes a directory of its own name, as in Flink."""
    found = []
    for entry in _entries(configuration, options.PYTHON_ARCHIVES):
        path, target = _split(entry)
        found.append(PythonArchive(path, target or PurePath(path).name))
    _refuse_interpreter_in_archive(configuration, found)
    return tuple(found)


def _check_archive(path: str, target: str | None) -> None:
    for text in (path, target or "."):
        if _ENTRIES in text or _PARTS in text:
            raise InvalidProgramError(
                f"add_python_archive: path and target must not contain ',' or '#', but one is "
                f"{text!r}."
            )
    if target is not None and (PurePath(target).is_absolute() or ".." in PurePath(target).parts):
        raise InvalidProgramError(
            f"add_python_archive: the target must lie within the working directory of the tasks, "
            f"and {target!r} does not."
        )


def _refuse_interpreter_in_archive(
    configuration: Configuration, found: list[PythonArchive]
) -> None:
    """Spark starts the interpreter before any job and its archives are there."""
    executable = configuration.get_optional(options.PYTHON_EXECUTABLE)
    if executable is None:
        return
    for archive in found:
        if PurePath(executable).is_relative_to(archive.target):
            raise ConfigurationError(
                f"python.executable: {executable} lies in the archive {archive.path}. The "
                f"interpreter of the tasks must be installed on their machines; archives are for "
                f"data and modules.",
                key="python.executable",
            )


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
