"""Files, archives and requirements that travel with a job, in the notation of Flink's settings.

Python files and archives are separated by commas; a hash sign separates the parts of an entry. An
entry of the distributed cache reads ``name:model,path:/models/m.bin,executable:false``, and
semicolons separate the entries.
"""

from __future__ import annotations

from pathlib import PurePath

from firesteel.common.configuration import Configuration
from firesteel.config import options
from firesteel.config.option import Option
from firesteel.errors import ConfigurationError, InvalidProgramError
from firesteel.graph.settings import CachedFile, PythonArchive, PythonRequirements

_ENTRIES = ","
_PARTS = "#"


def add_python_file(configuration: Configuration, file_path: str) -> None:
    """Put a file on the Python path of the tasks. The last one comes first."""
    _set(configuration, options.PYTHON_FILES, [file_path, *python_files(configuration)])


def python_files(configuration: Configuration) -> tuple[str, ...]:
    return tuple(_entries(configuration, options.PYTHON_FILES))


def add_python_archive(configuration: Configuration, path: str, target: str | None) -> None:
    _check_archive(path, target)
    entries = _entries(configuration, options.PYTHON_ARCHIVES)
    _set(configuration, options.PYTHON_ARCHIVES, [*entries, _joined(path, target)])


def python_archives(configuration: Configuration) -> tuple[PythonArchive, ...]:
    """Return the archives. One without a target becomes a directory of its own name, as in Flink."""
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
            f"add_python_archive: the target must be within the working directory of the tasks, "
            f"but {target!r} is not."
        )


def _refuse_interpreter_in_archive(
    configuration: Configuration, found: list[PythonArchive]
) -> None:
    """Refuse it, because Spark starts the interpreter before a job brings its archives."""
    executable = configuration.get_optional(options.PYTHON_EXECUTABLE)
    if executable is None:
        return
    for archive in found:
        if PurePath(executable).is_relative_to(archive.target):
            raise ConfigurationError(
                f"python.executable: {executable} is in the archive {archive.path}. The "
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


_CACHED_FILES, _CACHED_FIELDS, _CACHED_PARTS = ";", ",", ":"


def register_cached_file(
    configuration: Configuration, path: str, name: str, *, executable: bool
) -> None:
    for text in (path, name):
        if not text or _CACHED_FILES in text or _CACHED_FIELDS in text:
            raise InvalidProgramError(
                f"register_cached_file: path and name must be str without ',' and ';', but one is "
                f"{text!r}."
            )
    registered = cached_files(configuration)
    if any(file.name == name for file in registered):
        raise InvalidProgramError(
            f"register_cached_file: the name {name!r} is already registered. Choose a different "
            "name."
        )
    files = [*registered, CachedFile(path, name, executable)]
    configuration.set(options.CACHED_FILES, _CACHED_FILES.join(map(_cached_text, files)))


def cached_files(configuration: Configuration) -> tuple[CachedFile, ...]:
    text = configuration.get_optional(options.CACHED_FILES) or ""
    return tuple(_parse_cached(entry) for entry in text.split(_CACHED_FILES) if entry.strip())


def _cached_text(file: CachedFile) -> str:
    return f"name:{file.name},path:{file.path},executable:{str(file.executable).lower()}"


def _parse_cached(entry: str) -> CachedFile:
    fields = {}
    for field in entry.split(_CACHED_FIELDS):
        key, _, value = field.partition(_CACHED_PARTS)
        fields[key.strip()] = value.strip()
    if not fields.get("name") or not fields.get("path"):
        raise ConfigurationError(
            f"{options.CACHED_FILES.key}: {entry!r} has no name or no path; write "
            "name:model,path:/models/m.bin",
            key=options.CACHED_FILES.key,
        )
    return CachedFile(fields["path"], fields["name"], fields.get("executable") == "true")
