"""Where the file source reads: local paths, or URIs through pyarrow's file systems."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from firesteel.errors import FiresteelError, NotYetSupportedError
from firesteel.filesystems.arrow_files import file_system_of

__all__ = ["FileStatus", "PathNotFoundError", "list_files", "local_path", "open_file", "qualify"]

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
_WILDCARD = re.compile(r"[*?\[]")


class PathNotFoundError(FiresteelError, FileNotFoundError):
    """A path that a source should read is not there."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"FileSource: there is nothing at {path!r}. Paths are files, directories or globs "
            "that the driver and all tasks can see."
        )
        self.path = path


@dataclass(frozen=True, slots=True)
class FileStatus:
    path: str
    size: int


def qualify(path: str) -> str:
    """An absolute local path, or the URI as it is."""
    if path.startswith("file:"):
        return os.path.abspath(unquote(urlsplit(path).path))
    if _SCHEME.match(path):
        return path
    return os.path.abspath(os.path.expanduser(path))


def local_path(path: str, user: str) -> str:
    """The absolute local path of ``path``; anything remote is an error that names ``user``."""
    qualified = qualify(path)
    if _SCHEME.match(qualified):
        raise NotYetSupportedError(
            f"{user} on {path!r}", "only local and mounted file systems can be written"
        )
    return qualified


def list_files(path: str, *, must_exist: bool = True) -> list[FileStatus]:
    """Files at a qualified path, sorted; hidden ones (``.`` and ``_``) in directories left out.

    Args:
        path: A file, a directory (read recursively), or a glob that names files or directories.
        must_exist: Whether finding nothing at all is an error. An empty directory is none.
    """
    if _SCHEME.match(path):
        return sorted(_list_remote(path, must_exist), key=lambda status: status.path)
    roots = [path]
    if not os.path.exists(path):
        roots = [] if not _WILDCARD.search(path) else sorted(glob.glob(path, recursive=True))
        roots = [root for root in roots if not _is_hidden(os.path.basename(root))]
        if not roots and must_exist:
            raise PathNotFoundError(path)
    found: dict[str, FileStatus] = {}
    for root in roots:
        for status in _walk_local(root):
            found[status.path] = status
    return sorted(found.values(), key=lambda status: status.path)


def open_file(path: str) -> BinaryIO:
    """A seekable binary stream."""
    if _SCHEME.match(path):
        file_system, inner = file_system_of(path)
        return cast(BinaryIO, file_system.open_input_file(inner))
    return open(path, "rb")


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _walk_local(root: str) -> Iterator[FileStatus]:
    if not os.path.isdir(root):
        yield FileStatus(root, os.path.getsize(root))
        return
    visited: set[str] = set()
    for directory, names, files in os.walk(root, followlinks=True):
        real = os.path.realpath(directory)
        if real in visited:  # a symbolic link back into the tree
            names.clear()
            continue
        visited.add(real)
        names[:] = [name for name in names if not _is_hidden(name)]
        for name in files:
            path = os.path.join(directory, name)
            if not _is_hidden(name):
                try:
                    yield FileStatus(path, os.path.getsize(path))
                except FileNotFoundError:
                    continue  # gone since it was listed


def _list_remote(uri: str, must_exist: bool) -> Iterator[FileStatus]:
    wildcard = _WILDCARD.search(uri)
    base = uri if wildcard is None else uri[: uri.rindex("/", 0, wildcard.start())]
    file_system, inner = file_system_of(base)
    info = file_system.get_file_info(inner)
    if info.type == fs.FileType.NotFound:
        if must_exist:
            raise PathNotFoundError(uri)
        return
    prefix = base.removesuffix("/")
    if info.type == fs.FileType.File:
        yield FileStatus(prefix, info.size)
        return
    matched = False
    for entry in file_system.get_file_info(fs.FileSelector(inner, recursive=True)):
        relative = entry.path[len(inner) :].lstrip("/")
        path = f"{prefix}/{relative}"
        if entry.type != fs.FileType.File or any(map(_is_hidden, relative.split("/"))):
            continue
        if wildcard is None or _matches(path, uri):
            matched = True
            yield FileStatus(path, entry.size)
    if wildcard is not None and must_exist and not matched:
        raise PathNotFoundError(uri)


def _matches(path: str, pattern: str) -> bool:
    """Whether the pattern names the file or a directory above it, part by part."""
    parts, patterns = path.split("/"), pattern.rstrip("/").split("/")
    return len(parts) >= len(patterns) and all(
        fnmatch.fnmatchcase(part, wanted) for part, wanted in zip(parts, patterns, strict=False)
    )
