"""Access by host name, origin and token."""

from __future__ import annotations

import pytest

from firesteel.rest.calls import RestError
from firesteel.rest.security import Access, is_loopback

OWN = {"host": "localhost:8081"}
LOCAL = Access()
REMOTE = Access(token="secret")


def status(access: Access, headers: dict[str, str], *, changes: bool = True) -> int:
    try:
        access.check(headers, changes=changes)
    except RestError as error:
        return error.status
    return 200


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"])
def test_loopback_addresses(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.example.org"]
)
def test_other_addresses(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "headers",
    [
        OWN,
        {"host": "127.0.0.1:8081"},
        {"host": "[::1]:8081"},
        {**OWN, "origin": "http://localhost:8081"},
        {**OWN, "origin": "http://localhost:8081", "sec-fetch-site": "same-origin"},
        {**OWN, "referer": "http://localhost:8081/#/overview"},
        {**OWN, "sec-fetch-site": "none"},
    ],
)
def test_programs_and_own_pages_may_change_things(headers: dict[str, str]) -> None:
    assert status(LOCAL, headers) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {**OWN, "origin": "http://evil.example"},
        {**OWN, "origin": "http://localhost:9999"},
        {**OWN, "origin": "null"},
        {**OWN, "origin": ""},
        {**OWN, "origin": "http://[broken"},
        {**OWN, "referer": "http://evil.example/page"},
        {**OWN, "sec-fetch-site": "cross-site"},
        {**OWN, "sec-fetch-site": "same-site"},
    ],
)
def test_pages_from_elsewhere_may_not_change_things(headers: dict[str, str]) -> None:
    assert status(LOCAL, headers) == 403
    assert status(LOCAL, headers, changes=False) == 200


@pytest.mark.parametrize("host", ["evil.example:8081", "", "[broken", "10.0.0.1:8081"])
def test_a_local_server_refuses_names_that_are_not_its_own(host: str) -> None:
    """A name of a different server may resolve to the loopback address."""
    assert status(LOCAL, {"host": host}, changes=False) == 403


def test_a_local_server_has_the_name_that_is_configured() -> None:
    access = Access(names=frozenset({"build-7.example"}))
    assert status(access, {"host": "build-7.example:8081"}) == 200


@pytest.mark.parametrize(
    "given", [None, "", "secret", "Bearer", "Bearer wrong", "Bearer secret2", "Basic secret"]
)
def test_a_wrong_token_is_refused(given: str | None) -> None:
    headers = {"host": "machine:8081"} | ({} if given is None else {"authorization": given})
    assert status(REMOTE, headers) == 401
    assert status(REMOTE, headers, changes=False) == 200


def test_the_right_token_is_accepted() -> None:
    headers = {"host": "machine:8081", "authorization": "Bearer secret"}
    assert status(REMOTE, headers) == 200


def test_the_token_does_not_help_a_page_from_elsewhere() -> None:
    headers = {
        "host": "machine:8081",
        "authorization": "Bearer secret",
        "origin": "http://evil.example",
    }
    assert status(REMOTE, headers) == 403
