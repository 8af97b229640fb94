"""JDBC URLs, as users of PyFlink write them."""

from __future__ import annotations

import pickle

import pytest

from firesteel.connectors.jdbc.databases import (
    MysqlDatabase,
    PostgresDatabase,
    SqliteDatabase,
    database_of,
)
from firesteel.connectors.jdbc.errors import JdbcConnectionError
from firesteel.errors import ConfigurationError
from tests.servers.postgres import PostgresServer


@pytest.mark.parametrize(
    ("url", "arguments"),
    [
        ("jdbc:postgresql:shop", {"host": "localhost", "port": "5432", "dbname": "shop"}),
        ("jdbc:postgresql://db/shop", {"host": "db", "port": "5432", "dbname": "shop"}),
        ("jdbc:postgresql://db:6000/", {"host": "db", "port": "6000"}),
        (
            "jdbc:postgresql://a:1,[::1]:2/shop?targetServerType=primary",
            {
                "host": "a,::1",
                "port": "1,2",
                "dbname": "shop",
                "target_session_attrs": "read-write",
            },
        ),
        (
            "jdbc:postgresql://db/my%20shop?user=ann&password=a%26b&reWriteBatchedInserts=true",
            {
                "host": "db",
                "port": "5432",
                "dbname": "my shop",
                "user": "ann",
                "password": "a&b",
            },
        ),
        (
            "jdbc:postgresql://db/shop?ssl=true&currentSchema=my schema&ApplicationName=job",
            {
                "host": "db",
                "port": "5432",
                "dbname": "shop",
                "sslmode": "verify-full",
                "options": "-c search_path=my\\ schema",
                "application_name": "job",
            },
        ),
    ],
)
def test_urls_of_postgresql(url, arguments):
    database = database_of(url)
    assert isinstance(database, PostgresDatabase)
    assert database.arguments == arguments


def test_the_user_of_the_url_wins():
    database = database_of("jdbc:postgresql://db/shop?user=ann", "bob", "secret")
    assert isinstance(database, PostgresDatabase)
    assert database.arguments["user"] == "ann"
    assert database.arguments["password"] == "secret"


def test_urls_of_mysql():
    for scheme in ("mysql", "mariadb"):
        url = (
            f"jdbc:{scheme}://db:3307/shop?connectTimeout=2500&useSSL=false&characterEncoding=utf8"
        )
        database = database_of(url, "ann", "secret")
        assert isinstance(database, MysqlDatabase)
        assert database.arguments == {
            "host": "db",
            "port": 3307,
            "database": "shop",
            "charset": "utf8mb4",
            "connect_timeout": 2,
            "user": "ann",
            "password": "secret",
        }


def test_urls_of_sqlite(tmp_path):
    database = database_of(f"jdbc:sqlite:{tmp_path}/shop.db")
    assert isinstance(database, SqliteDatabase)
    connection = pickle.loads(pickle.dumps(database)).connect()
    assert database.query(connection, "SELECT ? || '?'", ["a"]) == [("a?",)]
    connection.close()
    assert (tmp_path / "shop.db").exists()


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("postgresql://db/shop", "must begin with jdbc:postgresql:"),
        ("jdbc:oracle:thin:@db", "must begin with jdbc:postgresql:"),
        ("jdbc:sqlite::memory:", "name a file"),
        ("jdbc:postgresql://db/shop?sslMode=require", "property 'sslMode'.*sslmode"),
        ("jdbc:mysql://db/shop?answer=42", "property 'answer'"),
        ("jdbc:mysql://a,b/shop", "several hosts"),
        ("jdbc:postgresql://db:x/shop", "not a host"),
    ],
)
def test_urls_that_are_wrong(url, text):
    with pytest.raises(ConfigurationError, match=text):
        database_of(url)


def test_errors_do_not_show_the_password():
    with pytest.raises(JdbcConnectionError) as caught:
        database_of("jdbc:postgresql://127.0.0.1:1/shop?user=ann&password=secret").connect()
    assert "jdbc:postgresql://127.0.0.1:1/shop" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_database_that_does_not_exist_fails_at_once(postgres: PostgresServer):
    url = postgres.url.replace(f"/{postgres.database}?", "/nothing?")
    with pytest.raises(JdbcConnectionError, match='database "nothing" does not exist'):
        database_of(url).connect(seconds=60)
