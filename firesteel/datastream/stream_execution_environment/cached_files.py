"""Files for the distributed cache, kept in Flink's configuration key and in its notation.

``name:model,path:/models/m.bin,executable:false;name:...``
"""

from __future__ import annotations

from firesteel.common.configuration import Configuration
from firesteel.config import options
from firesteel.errors import ConfigurationError, InvalidProgramError
from firesteel.graph.settings import CachedFile

_FILES, _FIELDS, _PARTS = ";", ",", ":"
_KEY = options.CACHED_FILES.key


def register(configuration: Configuration, path: str, name: str, *, executable: bool) -> None:
    for text in (path, name):
        if not text or _FILES in text or _FIELDS in text:
            raise InvalidProgramError(
                f"register_cached_file: path and name must be texts without ',' and ';', but one "
                f"is {text!r}."
            )
    registered = cached_files(configuration)
    if any(file.name == name for file in registered):
        raise InvalidProgramError(f"register_cached_file: the name {name!r} is taken.")
    files = [*registered, CachedFile(path, name, executable)]
    configuration.set(options.CACHED_FILES, _FILES.join(map(_text_of, files)))


def cached_files(configuration: Configuration) -> tuple[CachedFile, ...]:
    text = configuration.get_optional(options.CACHED_FILES) or ""
    return tuple(_parse(entry) for entry in text.split(_FILES) if entry.strip())


def _text_of(file: CachedFile) -> str:
    return f"name:{file.name},path:{file.path},executable:{str(file.executable).lower()}"


def _parse(entry: str) -> CachedFile:
    fields = {}
    for field in entry.split(_FIELDS):
        key, _, value = field.partition(_PARTS)
        fields[key.strip()] = value.strip()
    if not fields.get("name") or not fields.get("path"):
        raise ConfigurationError(
            f"{_KEY}: {entry!r} lacks a name or a path; write name:model,path:/models/m.bin",
            key=_KEY,
        )
    return CachedFile(fields["path"], fields["name"], fields.get("executable") == "true")
