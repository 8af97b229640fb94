from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.postgres import PostgresServer
from tests.servers.sqlite import SqliteServer


@pytest.fixture(params=["postgres", "sqlite"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> PostgresServer | SqliteServer:
    if request.param == "sqlite":
        return SqliteServer(tmp_path)
    found: PostgresServer = request.getfixturevalue("postgres")
    return found
