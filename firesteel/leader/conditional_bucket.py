"""Objects of a bucket with conditional writes, which pyarrow does not offer."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from firesteel.filesystems.file_systems import FileSystemOptions, s3_access, without_password
from firesteel.leader.services import HighAvailabilityError

try:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError
except ImportError:
    _MISSING = True
else:
    _MISSING = False

# Making a session of boto3 is not safe in several threads at once.
_connecting = threading.Lock()

# A lease is renewed every few seconds, so a call must not wait for long.
_CALL_SECONDS = 3
_ATTEMPTS = 2
CONNECTIONS = 16
_NOT_FOUND = 404
# The condition did not hold; a different writer was at it; there is nothing to replace.
_REFUSED = frozenset({_NOT_FOUND, 409, 412})
_NO_BUCKET = "NoSuchBucket"


def require_client() -> None:
    if _MISSING:
        raise HighAvailabilityError(
            "high-availability.type is filesystem with a storageDir in S3, which needs boto3: pip "
            "install 'firesteel[s3]'."
        )


@dataclass(frozen=True, slots=True)
class Version:
    """An object as it was read. ``tag`` names this version of it."""

    payload: bytes
    tag: str


class ConditionalBucket:
    """The objects below an S3 URI. Names are relative to it.

    All methods raise HighAvailabilityError if the store does not answer, or refuses access.

    Args:
        location: The URI.
        options: Settings for everything that it does not contain.
    """

    def __init__(self, location: str, options: FileSystemOptions) -> None:
        require_client()
        access = s3_access(location, options)
        self.location = without_password(location).rstrip("/")
        self._bucket = access.bucket
        self._prefix = f"{access.path}/" if access.path else ""
        endpoint = access.endpoint
        if endpoint is not None and "://" not in endpoint:
            endpoint = f"{access.scheme or 'https'}://{endpoint}"
        path_style = endpoint is not None if access.path_style is None else access.path_style
        config = Config(
            connect_timeout=_CALL_SECONDS,
            read_timeout=_CALL_SECONDS,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            max_pool_connections=CONNECTIONS,
            s3={"addressing_style": "path" if path_style else "virtual"},
            # Stores that are not Amazon's know no checksums of their own.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        with _connecting, self._explained("connect to"):
            self._client: Any = boto3.session.Session().client(
                "s3",
                aws_access_key_id=access.access_key,
                aws_secret_access_key=access.secret_key,
                aws_session_token=access.session_token,
                region_name=access.region,
                endpoint_url=endpoint,
                config=config,
            )

    def read(self, name: str) -> Version | None:
        """Return an object, or None if there is none."""
        with self._explained("read", name):
            try:
                found = self._client.get_object(**self._at(name))
                return Version(found["Body"].read(), str(found["ETag"]))
            except ClientError as error:
                if _status(error) != _NOT_FOUND or _code(error) == _NO_BUCKET:
                    raise
                return None

    def write(self, name: str, payload: bytes) -> None:
        with self._explained("write", name):
            self._client.put_object(**self._at(name), Body=payload)

    def create(self, name: str, payload: bytes) -> bool:
        """Write an object that does not exist. Returns False if it does."""
        return self._write_if(name, payload, IfNoneMatch="*")

    def replace(self, name: str, payload: bytes, tag: str) -> bool:
        """Write an object in place of one version. Returns False if it has a different version.

        The payload must differ from all earlier ones, because S3 gives equal objects equal tags.
        """
        return self._write_if(name, payload, IfMatch=tag)

    def _write_if(self, name: str, payload: bytes, **condition: str) -> bool:
        with self._explained("write", name):
            try:
                self._client.put_object(**self._at(name), Body=payload, **condition)
            except ClientError as error:
                if _status(error) not in _REFUSED or _code(error) == _NO_BUCKET:
                    raise
            else:
                return True
        # The first attempt may have succeeded, and its answer was lost.
        found = self.read(name)
        return found is not None and found.payload == payload

    def copy(self, source: str, target: str) -> None:
        """Copy an object, unless it does not exist."""
        with self._explained("copy", source):
            try:
                self._client.copy_object(**self._at(target), CopySource=self._at(source))
            except ClientError as error:
                if _status(error) != _NOT_FOUND or _code(error) == _NO_BUCKET:
                    raise

    def delete(self, name: str) -> None:
        """Delete an object, if it exists."""
        with self._explained("delete", name):
            self._client.delete_object(**self._at(name))

    def names(self, prefix: str) -> list[str]:
        """Return the names of all objects that begin with a prefix, in order."""
        with self._explained("list", prefix):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix + prefix
            )
            return [
                str(found["Key"]).removeprefix(self._prefix)
                for page in pages
                for found in page.get("Contents", ())
            ]

    def check_conditions(self) -> None:
        """Raise HighAvailabilityError if the store ignores the conditions of writes."""
        name = f"probe-{uuid.uuid4().hex}"
        try:
            ignored = (
                not self.create(name, b"1")
                or self.create(name, b"2")
                or self.replace(name, b"3", '"of-no-version"')
            )
        finally:
            with suppress(HighAvailabilityError):
                self.delete(name)
        if ignored:
            raise HighAvailabilityError(
                f"The object store of {self.location} does not check the conditions If-None-Match "
                "and If-Match of a PUT, so it cannot elect a leader. Use a store that does, such as "
                "Amazon S3 or a current MinIO, or high-availability.type zookeeper."
            )

    def _at(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + name}

    @contextmanager
    def _explained(self, action: str, name: str = "") -> Iterator[None]:
        try:
            yield
        except (BotoCoreError, ClientError, OSError, ValueError) as error:
            place = f"{self.location}/{name}".rstrip("/")
            raise HighAvailabilityError(
                f"cannot {action} {place}: {error}. Check high-availability.storageDir, s3.endpoint "
                "and the credentials."
            ) from error


def _status(error: Any) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
