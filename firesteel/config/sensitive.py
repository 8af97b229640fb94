"""Settings whose values are secrets. Logs, REST and archives hide them."""

from __future__ import annotations

from collections.abc import Mapping

_HIDDEN = "******"
# A key that contains one of these is a secret. The words are Flink's.
_SECRET_WORDS = (
    "password",
    "secret",
    "account.key",
    "apikey",
    "api-key",
    "auth-params",
    "service-key",
    "token",
    "basic-auth",
    "jaas.config",
    "http-headers",
    "access-key",
    "access.key",
    "accesskey",
)


def _is_secret(key: str) -> bool:
    lower = key.lower()
    return any(word in lower for word in _SECRET_WORDS)


def hide_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with ``******`` in place of each secret."""
    return {key: _HIDDEN if _is_secret(key) else value for key, value in settings.items()}
