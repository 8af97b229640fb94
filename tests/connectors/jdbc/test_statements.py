"""Placeholders of JDBC, in the syntax of each database."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.connectors.jdbc.databases import MysqlDatabase, PostgresDatabase, SqliteDatabase
from firesteel.connectors.jdbc.statements import translate

POSTGRES, SQLITE, MYSQL = PostgresDatabase, SqliteDatabase, MysqlDatabase


@pytest.mark.parametrize(
    ("database", "sql", "text", "parameters"),
    [
        (POSTGRES, "INSERT INTO t VALUES (?, ?)", "INSERT INTO t VALUES (%s, %s)", 2),
        (POSTGRES, "SELECT '?', ?", "SELECT '?', %s", 1),
        (POSTGRES, "SELECT 'it''s ?', ?", "SELECT 'it''s ?', %s", 1),
        (POSTGRES, r"SELECT E'\'?', ?", r"SELECT E'\'?', %s", 1),
        (POSTGRES, r"SELECT '\', ?", r"SELECT '\', %s", 1),
        (POSTGRES, 'SELECT "a?""b?", ?', 'SELECT "a?""b?", %s', 1),
        (POSTGRES, "SELECT ? -- ?\n, ?", "SELECT %s -- ?\n, %s", 2),
        (POSTGRES, "SELECT /* ? /* ? */ ? */ ?", "SELECT /* ? /* ? */ ? */ %s", 1),
        (POSTGRES, "SELECT $$ ? $$, $a$ ? $$ ? $a$, ?", "SELECT $$ ? $$, $a$ ? $$ ? $a$, %s", 1),
        (POSTGRES, "SELECT a$b, ?, c$d", "SELECT a$b, %s, c$d", 1),
        (POSTGRES, "SELECT a ?? 'b' AND c = ?", "SELECT a ? 'b' AND c = %s", 1),
        (POSTGRES, "SELECT 7 % ?, '%'", "SELECT 7 %% %s, '%%'", 1),
        (POSTGRES, "SELECT '? not closed", "SELECT '%s not closed", 1),
        (SQLITE, "SELECT ?, [a?], `b?`, '%' % ?", "SELECT ?, [a?], `b?`, '%' % ?", 2),
        (SQLITE, "SELECT /* /* ? */ ?", "SELECT /* /* ? */ ?", 1),
        (MYSQL, r"SELECT '\'?', ?, `c?`, \"d?\"".replace('\\"', '"'), None, 1),
        (MYSQL, "SELECT ? # ?\n, 5--?\n", "SELECT %s # ?\n, 5--%s\n", 2),
    ],
)
def test_placeholders(database, sql, text, parameters):
    statement = translate(sql, database.lexicon)
    assert statement.parameters == parameters
    assert statement.sql == sql
    if text is not None:
        assert statement.text == text


@given(st.text("?'\"-/*$%\\\nea ", max_size=30))
def test_any_text_ends_and_python_can_format_it(sql):
    statement = translate(sql, PostgresDatabase.lexicon)
    if statement.parameters == 0 and "%" in statement.text:
        assert (statement.text % ()).count("%") == sql.count("%")
    assert statement.text.replace("%%", "").count("%s") == statement.parameters
