"""One interface for the file systems of this machine and for object stores.

Checkpoints, savepoints, sources, sinks and the distributed cache all use this module. A test can
therefore replace the file system with ``firesteel.testing.FaultyFileSystem``.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple, Protocol, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from pyarrow import fs

from firesteel.errors import ConfigurationError

__all__ = [
    "FileStatus",
    "FileSystem",
    "FileSystemOptions",
    "LocalFileSystem",
    "Location",
    "S3Access",
    "find_file_system",
    "has_wildcard",
    "is_hidden",
    "is_s3",
    "is_uri",
    "qualify",
    "s3_access",
    "sync_path",
    "without_password",
]

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
_WILDCARD = re.compile(r"[*?\[]")
_S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})
_S3_CONNECT_SECONDS = 10
_S3_REQUEST_SECONDS = 60


@dataclass(frozen=True, slots=True)
class FileStatus:
    """A file, or a directory.

    ``modified`` is in seconds since 1970, and 0.0 if the file system does not provide it.
    """

    path: str
    size: int
    modified: float = 0.0
    is_directory: bool = False


class FileSystem(Protocol):
    """Reads and writes files. Paths are absolute within the file system and use slashes."""

    @property
    def has_atomic_rename(self) -> bool:
        """True if ``rename`` is atomic: readers see the whole new file or no file.

        If it is not atomic, ``write`` must be, as in object stores.
        """

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write a file. After an error, the caller deletes the incomplete file."""

    def create(self, path: str) -> BinaryIO:
        """Open a new file for writing. In an object store it appears when it is closed."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file. An existing file with the new name is replaced."""

    def sync(self, path: str) -> None:
        """Make a written file survive a crash of the machine, if that needs an extra step."""

    def read(self, path: str) -> bytes:
        """Return the whole file. Raises FileNotFoundError if there is none."""

    def open(self, path: str) -> BinaryIO:
        """Open a file as a seekable stream. Raises FileNotFoundError if there is none."""

    def size(self, path: str) -> int | None:
        """Return the size of a file, or None if there is no such file."""

    def find(self, path: str) -> list[FileStatus]:
        """Return the file or directory at ``path``. If there is none, treat ``path`` as a glob."""

    def list_files(self, directory: str, *, hidden: bool = True) -> list[FileStatus]:
        """Return all files below a directory, or none if the directory does not exist.

        Args:
            directory: The directory.
            hidden: Whether to include hidden files, and files in hidden directories.
        """

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""

    def delete_directory(self, path: str) -> None:
        """Delete a directory and its contents, if it exists."""


def is_hidden(name: str) -> bool:
    """Return True if the name of a file or directory begins with ``.`` or ``_``."""
    return name.startswith((".", "_"))


def has_wildcard(path: str) -> bool:
    """Return True if a path may be a glob."""
    return _WILDCARD.search(path) is not None


# Locations


@dataclass(frozen=True, slots=True)
class FileSystemOptions:
    """Access to object stores. For a field of None the environment decides, as in AWS tools."""

    s3_access_key: str | None = None
    s3_secret_key: str | None = field(default=None, repr=False)
    s3_session_token: str | None = field(default=None, repr=False)
    s3_endpoint: str | None = None
    s3_region: str | None = None
    s3_path_style: bool | None = None


class Location(NamedTuple):
    """A place in a file system: ``path`` within it, and ``uri`` as users write it.

    ``uri`` contains no credentials.
    """

    file_system: FileSystem
    path: str
    uri: str


def is_uri(path: str) -> bool:
    """Return True if a path has a scheme such as ``s3://``."""
    return _SCHEME.match(path) is not None


def qualify(path: str) -> str:
    """Return an absolute local path, or the URI unchanged. ``file:`` URIs are local paths."""
    if path.startswith("file:"):
        return os.path.abspath(unquote(urlsplit(path).path))
    if is_uri(path):
        return path
    return os.path.abspath(os.path.expanduser(path))


def without_password(uri: str) -> str:
    """Return the URI without its password and query, so that it can be shown.

    >>> without_password("s3://key:secret@bucket/path")
    's3://bucket/path'
    >>> without_password("hdfs://user:password@host/path")
    'hdfs://user@host/path'
    """
    if not is_uri(uri):
        return uri
    parts = urlsplit(uri)
    user_info, _, host = parts.netloc.rpartition("@")
    # In an S3 URI the user is an access key. In other URIs the user may be part of the address.
    user = "" if parts.scheme in _S3_SCHEMES else user_info.partition(":")[0]
    return f"{parts.scheme}://{user and user + '@'}{host}{parts.path}"


def find_file_system(location: str, options: FileSystemOptions | None = None) -> Location:
    """Find the file system of a location.

    Args:
        location: A local path, ``file://...``, ``s3://bucket/path``, or a URI with a different
            scheme that pyarrow supports. An S3 URI may contain keys, as in
            ``s3://key:secret@bucket``. Its query may contain ``endpoint_override``, ``region``,
            ``access_key`` and ``secret_key``.
        options: Settings for everything that the location does not contain.
    """
    if not location:
        raise ConfigurationError("The path of a directory or file is empty. Set a path or a URI.")
    location = qualify(location)
    if not is_uri(location):
        return Location(LocalFileSystem(), location, location)
    parts = urlsplit(location)
    if parts.scheme in _S3_SCHEMES:
        return _s3(location, options or FileSystemOptions())
    plain = without_password(location)
    try:
        file_system, path = fs.FileSystem.from_uri(location)
    except (ValueError, OSError) as error:
        # pyarrow's message contains the URI with its password. The error must not show it as cause.
        reason = _reason(error).replace(location, plain)
        raise ConfigurationError(
            f"{plain!r} cannot be reached: {reason}. Use a local path, file://, s3://, or a "
            "different scheme that pyarrow supports."
        ) from None
    return Location(ArrowFileSystem(file_system), path.rstrip("/"), plain.rstrip("/"))


def _reason(error: Exception) -> str:
    """Return pyarrow's message. A short one replaces its long list of searched directories."""
    text = str(error)
    if "libjvm" in text or "libhdfs" in text:
        return (
            "hdfs:// needs Java's libjvm and Hadoop's libhdfs, and one of them was not found; set "
            "JAVA_HOME, HADOOP_HOME, and CLASSPATH to the output of `hadoop classpath --glob`"
        )
    return text


@dataclass(frozen=True, slots=True)
class S3Access:
    """The bucket of an S3 URI, the path in it, and the way to reach it.

    For a field of None the environment decides, as in AWS tools. ``scheme`` is that of an endpoint
    that has none.
    """

    bucket: str
    path: str
    access_key: str | None = field(repr=False)
    secret_key: str | None = field(repr=False)
    session_token: str | None = field(repr=False)
    region: str | None
    endpoint: str | None
    scheme: str | None
    path_style: bool | None


def is_s3(location: str) -> bool:
    """Return True if a location is an S3 URI."""
    return urlsplit(location).scheme in _S3_SCHEMES


def s3_access(location: str, options: FileSystemOptions) -> S3Access:
    """Read an S3 URI, with settings for everything that it does not contain."""
    parts = urlsplit(location)
    if not parts.hostname:
        raise ConfigurationError(
            f"{without_password(location)!r} names no bucket; write s3://bucket/path"
        )
    query = dict(parse_qsl(parts.query))
    return S3Access(
        bucket=parts.netloc.rpartition("@")[2],
        path=parts.path.removeprefix("/").rstrip("/"),
        access_key=query.get("access_key") or parts.username or options.s3_access_key,
        secret_key=query.get("secret_key") or parts.password or options.s3_secret_key,
        session_token=options.s3_session_token,
        region=query.get("region") or options.s3_region,
        endpoint=query.get("endpoint_override") or options.s3_endpoint,
        scheme=query.get("scheme"),
        path_style=options.s3_path_style,
    )


def _s3(location: str, options: FileSystemOptions) -> Location:
    access = s3_access(location, options)
    scheme = urlsplit(location).scheme
    path = f"{access.bucket}/{access.path}".rstrip("/")
    arguments: dict[str, Any] = {
        "access_key": access.access_key,
        "secret_key": access.secret_key,
        "session_token": access.session_token,
        "region": access.region,
        "endpoint_override": access.endpoint,
        "scheme": access.scheme,
    }
    if access.path_style is not None:
        arguments["force_virtual_addressing"] = not access.path_style
    given = {name: value for name, value in arguments.items() if value is not None}

    def connect() -> Any:
        return fs.S3FileSystem(
            connect_timeout=_S3_CONNECT_SECONDS,
            request_timeout=_S3_REQUEST_SECONDS,
            # With this option a small object is one PUT instead of a multipart upload.
            allow_delayed_open=True,
            **given,
        )

    return Location(ArrowFileSystem(connect=connect), path, f"{scheme}://{path}")


# File systems


class ArrowFileSystem:
    """Object stores and remote file systems. An object appears only when its upload is complete.

    The process that uses the file system connects at the first use.
    """

    def __init__(self, file_system: Any = None, connect: Callable[[], Any] | None = None) -> None:
        self._file_system = file_system
        self._connect = connect

    @property
    def has_atomic_rename(self) -> bool:
        return False

    @property
    def _fs(self) -> Any:
        if self._file_system is None:
            assert self._connect is not None
            self._file_system = self._connect()
        return self._file_system

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        written = 0
        with self._fs.open_output_stream(path, compression=None) as stream:
            for chunk in chunks:
                stream.write(chunk)
                written += len(chunk)
        # An interrupted stream is closed without an error and may leave a shorter object.
        size = self.size(path)
        if size != written:
            raise OSError(
                f"{written} bytes were written to {path}, but the store has {size or 0} bytes"
            )

    def create(self, path: str) -> BinaryIO:
        return cast(BinaryIO, self._fs.open_output_stream(path, compression=None))

    def rename(self, source: str, target: str) -> None:
        self._fs.move(source, target)

    def sync(self, path: str) -> None:
        """Do nothing: an object appears only after the store has saved it."""

    def read(self, path: str) -> bytes:
        with self._fs.open_input_stream(path, compression=None) as stream:
            return bytes(stream.read())

    def open(self, path: str) -> BinaryIO:
        return cast(BinaryIO, self._fs.open_input_file(path))

    def size(self, path: str) -> int | None:
        info = self._fs.get_file_info(path)
        return int(info.size) if info.type == fs.FileType.File else None

    def find(self, path: str) -> list[FileStatus]:
        info = self._fs.get_file_info(path)
        if info.type != fs.FileType.NotFound:
            return [_status(info)]
        wildcard = _WILDCARD.search(path)
        if wildcard is None:
            return []
        fixed = path.rfind("/", 0, wildcard.start())
        return sorted(
            self._matches(path[: max(fixed, 0)], path[fixed + 1 :].strip("/").split("/")),
            key=lambda status: status.path,
        )

    def _matches(self, directory: str, patterns: list[str]) -> Iterator[FileStatus]:
        """Match one directory level after the other. Each directory is listed with one request."""
        first, *rest = patterns
        selector = fs.FileSelector(directory, allow_not_found=True)
        for info in self._fs.get_file_info(selector):
            if not fnmatch.fnmatchcase(info.base_name, first):
                continue
            if not rest:
                yield _status(info)
            elif info.type == fs.FileType.Directory:
                yield from self._matches(info.path, rest)

    def list_files(self, directory: str, *, hidden: bool = True) -> list[FileStatus]:
        selector = fs.FileSelector(directory, recursive=True, allow_not_found=True)
        return [
            _status(info)
            for info in self._fs.get_file_info(selector)
            if info.type == fs.FileType.File
            and (hidden or not any(map(is_hidden, info.path[len(directory) + 1 :].split("/"))))
        ]

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._fs.delete_file(path)

    def delete_directory(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._fs.delete_dir(path)


def _status(info: Any) -> FileStatus:
    is_directory = info.type == fs.FileType.Directory
    return FileStatus(info.path, int(info.size or 0), (info.mtime_ns or 0) / 1e9, is_directory)


class LocalFileSystem(ArrowFileSystem):
    """A local disk or a mounted file system."""

    def __init__(self) -> None:
        super().__init__(fs.LocalFileSystem())
        # Directories whose entries in their parents are known to be on the disk.
        self._durable: set[str] = set()

    @property
    def has_atomic_rename(self) -> bool:
        return True

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        try:
            file = open(path, "wb")  # noqa: SIM115  # a with block below closes it
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            file = open(path, "wb")  # noqa: SIM115
        with file:
            file.writelines(chunks)

    def sync(self, path: str) -> None:
        """Sync the file, its entry in the directory, and the entries of new directories above."""
        sync_path(path)
        self.sync_directory(os.path.dirname(path))

    def sync_directory(self, path: str) -> None:
        """Sync the entries of a directory, and those of new directories above it.

        A new directory is lost in a crash, with all files in it, unless its parent is synced too.
        """
        path = os.path.realpath(path)
        sync_path(path)
        if path in self._durable or os.path.ismount(path):
            return
        # A directory that this user cannot read has not been created by this user.
        with contextlib.suppress(PermissionError):
            self.sync_directory(os.path.dirname(path))
        self._durable.add(path)

    def delete_directory(self, path: str) -> None:
        gone = os.path.realpath(path)
        self._durable = {
            one for one in self._durable if one != gone and not one.startswith(f"{gone}/")
        }
        super().delete_directory(path)

    def create(self, path: str) -> BinaryIO:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "wb")

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def open(self, path: str) -> BinaryIO:
        return open(path, "rb")

    def find(self, path: str) -> list[FileStatus]:
        if os.path.exists(path):
            return list(_local_status([path]))
        return list(_local_status(sorted(glob.glob(path, recursive=True))))

    def list_files(self, directory: str, *, hidden: bool = True) -> list[FileStatus]:
        return [
            status
            for status in _local_status(_walk(directory, hidden=hidden))
            if not status.is_directory
        ]


def sync_path(path: str) -> None:
    """Write a local file, or the entries of a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _walk(root: str, *, hidden: bool) -> Iterator[str]:
    """The files below a directory. Follows symbolic links, unless they lead back into the tree."""
    visited: set[str] = set()
    for directory, names, files in os.walk(root, followlinks=True):
        real = os.path.realpath(directory)
        if real in visited:
            names.clear()
            continue
        visited.add(real)
        if not hidden:
            names[:] = [name for name in names if not is_hidden(name)]
        for name in files:
            if hidden or not is_hidden(name):
                yield os.path.join(directory, name)


def _local_status(paths: Iterable[str]) -> Iterator[FileStatus]:
    for path in paths:
        # A file may disappear after its directory was listed.
        with contextlib.suppress(FileNotFoundError):
            found = os.stat(path)
            is_directory = os.path.isdir(path)
            yield FileStatus(path, found.st_size, found.st_mtime, is_directory)
