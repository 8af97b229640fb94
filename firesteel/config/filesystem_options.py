"""Settings of object stores."""

from __future__ import annotations

from firesteel.config.option import Option
from firesteel.config.values import BOOLEAN, STRING

S3_ACCESS_KEY: Option[str | None] = Option(
    "s3.access-key",
    STRING,
    None,
    "The access key of S3. The default is the standard credential chain of AWS tools.",
    deprecated_keys=("s3.access.key",),
)
S3_SECRET_KEY: Option[str | None] = Option(
    "s3.secret-key",
    STRING,
    None,
    "The secret key of S3.",
    deprecated_keys=("s3.secret.key",),
)
S3_SESSION_TOKEN: Option[str | None] = Option(
    "s3.session.token", STRING, None, "The session token of temporary S3 credentials."
)
S3_ENDPOINT: Option[str | None] = Option(
    "s3.endpoint", STRING, None, "The address of an S3-compatible object store other than Amazon's."
)
S3_REGION: Option[str | None] = Option(
    "s3.endpoint.region", STRING, None, "The region of S3. On AWS it is detected."
)
S3_PATH_STYLE: Option[bool | None] = Option(
    "s3.path.style.access",
    BOOLEAN,
    None,
    "Put the bucket into the path instead of the host name. The default is true if s3.endpoint is "
    "set, else false.",
    deprecated_keys=("s3.path-style-access",),
)
