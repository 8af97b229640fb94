"""Access control of the REST server: host names, origins and the token."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from firesteel.rest.calls import RestError

_LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})
# Values of Sec-Fetch-Site that browsers send for a page of this server, or for a typed address.
_OWN_PAGE = frozenset({"same-origin", "none"})


def is_loopback(host: str) -> bool:
    """Return True if an address or a name can only be reached from this machine."""
    host = host.strip("[]").lower()
    if host in _LOOPBACK_NAMES or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """Decides about a request by its headers.

    ``token`` is None for a server that only this machine can reach. Such a server also refuses names
    that are not its own: a page elsewhere could otherwise reach it under a name that resolves to the
    loopback address.
    """

    token: str | None = None
    names: frozenset[str] = frozenset()

    def check(self, headers: Mapping[str, str], *, changes: bool) -> None:
        """Raise RestError 401 or 403 if the request is refused."""
        host = headers.get("host", "")
        if self.token is None and not self._is_own_name(host):
            raise RestError(403, f"This server is not known as {host!r}. Use localhost.")
        if not changes:
            return
        self._check_origin(headers, host)
        if self.token is not None and not has_token(headers, self.token):
            raise RestError(
                401,
                "This call needs the token of the server: send the header "
                "'Authorization: Bearer <token>'.",
            )

    def _is_own_name(self, host: str) -> bool:
        # urlsplit takes the port off, also from an IPv6 address.
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return is_loopback(name) or name in self.names

    def _check_origin(self, headers: Mapping[str, str], host: str) -> None:
        """Refuse requests of pages from other servers. Programs send none of these headers."""
        site = headers.get("sec-fetch-site")
        if site is not None and site not in _OWN_PAGE:
            raise RestError(403, "Pages of other servers may not call this server.")
        for name in ("origin", "referer"):
            value = headers.get(name)
            if value is not None and _authority(value) != host.lower():
                raise RestError(403, f"Calls from {value!r} are refused: it is a different server.")


def has_token(headers: Mapping[str, str], token: str) -> bool:
    """Return True if a request carries the token. The time of the comparison says nothing about it."""
    kind, _, given = headers.get("authorization", "").partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _authority(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""
