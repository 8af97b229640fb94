"""File systems as checkpoints need them: local disks, and everything that pyarrow can reach.

Nothing else in this room touches a file system, so ``firesteel.testing.FaultyFileSystem`` can stand
in the way of every operation.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from pyarrow import fs

from firesteel.errors import ConfigurationError
from firesteel.filesystems.arrow_files import file_system_of

__all__ = ["FileStatus", "FileSystem", "FileSystemOptions", "find_file_system"]

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")
_S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})
_S3_CONNECT_SECONDS = 10
_S3_REQUEST_SECONDS = 60


@dataclass(frozen=True, slots=True)
class FileStatus:
    """``modified`` is in seconds since 1970; 0.0 where the file system does not tell."""

    path: str
    size: int
    modified: float = 0.0


class FileSystem(Protocol):
    """Paths are absolute within the file system, with slashes."""

    @property
    def has_atomic_rename(self) -> bool:
        """Whether ``rename`` shows the new file whole. Else ``write`` must, as object stores do."""

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """What an error leaves behind is the caller's to delete."""

    def rename(self, source: str, target: str) -> None: ...

    def sync(self, path: str) -> None:
        """Make a written file outlast the machine, where that takes an extra step."""

    def read(self, path: str) -> bytes:
        """The whole file; FileNotFoundError if there is none."""

    def size(self, path: str) -> int | None:
        """None: there is no such file."""

    def list_files(self, directory: str) -> list[FileStatus]:
        """All files below; empty if there is no such directory."""

    def delete(self, path: str) -> None:
        """Fine if there is no such file."""

    def delete_directory(self, path: str) -> None:
        """With everything in it; fine if there is no such directory."""


@dataclass(frozen=True, slots=True)
class FileSystemOptions:
    """How to reach object stores. What is not given comes from the environment, as boto does it."""

    s3_access_key: str | None = None
    s3_secret_key: str | None = field(default=None, repr=False)
    s3_session_token: str | None = field(default=None, repr=False)
    s3_endpoint: str | None = None
    s3_region: str | None = None
    s3_path_style: bool | None = None


def find_file_system(
    location: str, options: FileSystemOptions | None = None
) -> tuple[FileSystem, str, str]:
    """The file system of a location, the path within it, and the location in its plain form.

    A location is a local path, ``file://...``, ``s3://bucket/path`` (options may stand behind a
    ``?``: ``endpoint_override``, ``region``, ``access_key``, ``secret_key``), or what else pyarrow
    knows. The plain form has no credentials in it.
    """
    if not location:
        raise ConfigurationError("the path of a checkpoint directory is empty")
    if location.startswith("file:"):
        location = unquote(urlsplit(location).path)
    if not _SCHEME.match(location):
        path = os.path.abspath(os.path.expanduser(location))
        return LocalFileSystem(), path, path
    parts = urlsplit(location)
    if parts.scheme in _S3_SCHEMES:
        return _s3(location, options or FileSystemOptions())
    try:
        file_system, path = file_system_of(location)
    except (ValueError, OSError) as error:
        raise ConfigurationError(
            f"{location!r} is no place for checkpoints: {error}. Use a local path, file://, s3://, "
            "or another scheme that pyarrow supports."
        ) from error
    host = parts.netloc.rpartition("@")[2]
    plain = f"{parts.scheme}://{host}{parts.path}".rstrip("/")
    return ArrowFileSystem(file_system), path.rstrip("/"), plain


def _s3(location: str, options: FileSystemOptions) -> tuple[FileSystem, str, str]:
    parts = urlsplit(location)
    bucket = parts.hostname or ""
    if not bucket:
        raise ConfigurationError(f"{location!r} names no bucket; write s3://bucket/path")
    path = f"{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
    query = dict(parse_qsl(parts.query))
    arguments: dict[str, Any] = {
        "access_key": query.get("access_key") or parts.username or options.s3_access_key,
        "secret_key": query.get("secret_key") or parts.password or options.s3_secret_key,
        "session_token": options.s3_session_token,
        "region": query.get("region") or options.s3_region,
        "endpoint_override": query.get("endpoint_override") or options.s3_endpoint,
        "scheme": query.get("scheme"),
    }
    if options.s3_path_style is not None:
        arguments["force_virtual_addressing"] = not options.s3_path_style
    given = {name: value for name, value in arguments.items() if value is not None}

    def connect() -> Any:
        return fs.S3FileSystem(
            connect_timeout=_S3_CONNECT_SECONDS,
            request_timeout=_S3_REQUEST_SECONDS,
            # A small object is then one PUT instead of a multipart upload.
            allow_delayed_open=True,
            **given,
        )

    return ArrowFileSystem(connect=connect), path, f"{parts.scheme}://{path}"


class ArrowFileSystem:
    """Object stores and remote file systems. An object appears whole, once its upload has ended.

    The connection is made at the first use, in the process that uses it.
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
        with self._fs.open_output_stream(path) as stream:
            for chunk in chunks:
                stream.write(chunk)
                written += len(chunk)
        # A stream that broke off is closed all the same, and may leave a shorter object.
        size = self.size(path)
        if size != written:
            raise OSError(f"{written} bytes were written, but {size} are there")

    def rename(self, source: str, target: str) -> None:
        self._fs.move(source, target)

    def sync(self, path: str) -> None:
        """Nothing to do: an object that is there is safe."""

    def read(self, path: str) -> bytes:
        with self._fs.open_input_stream(path) as stream:
            return bytes(stream.read())

    def size(self, path: str) -> int | None:
        info = self._fs.get_file_info(path)
        return int(info.size) if info.type == fs.FileType.File else None

    def list_files(self, directory: str) -> list[FileStatus]:
        selector = fs.FileSelector(directory, recursive=True, allow_not_found=True)
        return [
            FileStatus(info.path, int(info.size), (info.mtime_ns or 0) / 1e9)
            for info in self._fs.get_file_info(selector)
            if info.type == fs.FileType.File
        ]

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._fs.delete_file(path)

    def delete_directory(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._fs.delete_dir(path)


class LocalFileSystem(ArrowFileSystem):
    """A disk of this machine or a mounted one."""

    def __init__(self) -> None:
        super().__init__(fs.LocalFileSystem())

    @property
    def has_atomic_rename(self) -> bool:
        return True

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        try:
            file = open(path, "wb")  # noqa: SIM115  # entered below; the directory comes on demand
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            file = open(path, "wb")  # noqa: SIM115
        with file:
            file.writelines(chunks)

    def sync(self, path: str) -> None:
        """The file, and its entry in the directory."""
        for target in (path, os.path.dirname(path)):
            descriptor = os.open(target, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)
