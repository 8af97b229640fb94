"""Paths of file sources and sinks, and the files at them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import BinaryIO
from urllib.parse import urlsplit

from firesteel.errors import FiresteelError
from firesteel.filesystems.file_systems import (
    FileStatus,
    FileSystemOptions,
    Location,
    find_file_system,
    has_wildcard,
    is_hidden,
    is_uri,
    qualify,
    without_password,
)

__all__ = ["FilePaths", "PathNotFoundError"]


class PathNotFoundError(FiresteelError, FileNotFoundError):
    """A path that a source should read does not exist."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"FileSource: there is no file or directory at {path!r}. A path must be a file, a "
            "directory or a glob that the driver and all tasks can access."
        )
        self.path = path


@dataclass(frozen=True, slots=True)
class FilePaths:
    """Files, directories and globs on this machine or in object stores.

    ``paths`` and the paths of all files found contain no credentials, so splits, checkpoints and
    messages can name them. ``credentials`` are those that the user wrote into URIs, by authority
    (``s3://bucket``).
    """

    paths: tuple[str, ...]
    options: FileSystemOptions = field(default_factory=FileSystemOptions)
    credentials: dict[str, str] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(paths: tuple[str, ...]) -> FilePaths:
        plain: list[str] = []
        credentials: dict[str, str] = {}
        for path in map(qualify, paths):
            # A ``?`` is a wildcard here, and not the beginning of a query.
            head, mark, tail = path.partition("?")
            plain.append(without_password(head) + mark + tail)
            if is_uri(path) and "@" in urlsplit(path).netloc:
                credentials[_authority(plain[-1])] = _authority(path)
        return FilePaths(tuple(plain), credentials=credentials)

    def with_options(self, options: FileSystemOptions) -> FilePaths:
        return replace(self, options=options)

    def list_files(self, path: str, *, must_exist: bool = True) -> list[FileStatus]:
        """Return the files at one of the paths, sorted, without hidden ones in directories.

        Args:
            path: A file, a directory (read recursively), or a glob that matches files or directories.
            must_exist: Whether finding nothing at all is an error. An empty directory is none.
        """
        fixed = _without_wildcards(path)
        file_system, root, uri = self.locate(fixed)
        pattern = root.rstrip("/") + path.rstrip("/")[len(fixed.rstrip("/")) :]
        found = file_system.find(pattern)
        if [status.path for status in found] != [pattern]:
            found = [status for status in found if not is_hidden(status.path.rpartition("/")[2])]
        if not found and must_exist:
            raise PathNotFoundError(path)
        files: dict[str, FileStatus] = {}
        for status in found:
            below = [status]
            if status.is_directory:
                below = file_system.list_files(status.path, hidden=False)
            for file in below:
                name = uri + file.path[len(root) :]
                files[name] = replace(file, path=name)
        return [files[name] for name in sorted(files)]

    def open(self, path: str) -> BinaryIO:
        """Open a file that ``list_files`` has returned."""
        file_system, inner, _ = self.locate(path)
        return file_system.open(inner)

    def locate(self, path: str) -> Location:
        """Return the file system of a path without credentials, and the path within it."""
        return find_file_system(self._with_credentials(path), self.options)

    def _with_credentials(self, path: str) -> str:
        authority = _authority(path)
        given = self.credentials.get(authority)
        return path if given is None else given + path[len(authority) :]


def _authority(uri: str) -> str:
    """Return ``s3://bucket`` for ``s3://bucket/path``, and an empty text for a local path."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}" if is_uri(uri) else ""


def _without_wildcards(path: str) -> str:
    """Return the part of a path before its first wildcard, or the whole path if it has none."""
    parts = path.split("/")
    for number, part in enumerate(parts):
        if has_wildcard(part):
            return "/".join(parts[:number]) or "/"
    return path
