"""File system settings of a job, read from its configuration."""

from __future__ import annotations

from firesteel.common.configuration import Configuration
from firesteel.config import filesystem_options as keys
from firesteel.filesystems.file_systems import FileSystemOptions


def file_system_options(configuration: Configuration) -> FileSystemOptions:
    """Read the settings of object stores. The result can be pickled, and slots receive it."""
    return FileSystemOptions(
        s3_access_key=configuration.get(keys.S3_ACCESS_KEY),
        s3_secret_key=configuration.get(keys.S3_SECRET_KEY),
        s3_session_token=configuration.get(keys.S3_SESSION_TOKEN),
        s3_endpoint=configuration.get(keys.S3_ENDPOINT),
        s3_region=configuration.get(keys.S3_REGION),
        s3_path_style=configuration.get(keys.S3_PATH_STYLE),
    )
