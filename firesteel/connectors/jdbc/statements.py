"""SQL statements with JDBC's placeholders, translated for Python's database drivers."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Lexicon", "Statement", "translate"]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The parts of a database's syntax that decide where a question mark is a placeholder.

    Args:
        placeholder: The driver's placeholder. A driver with ``%s`` also reads each ``%`` of the text.
        opaque: A regular expression for literals, quoted names and comments, which stay as they are.
        nests_comments: True if block comments contain block comments.
    """

    placeholder: str
    opaque: re.Pattern[str]
    nests_comments: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement in the syntax of a driver.

    Args:
        sql: The statement as the user wrote it, for messages.
        text: The statement for the driver.
        parameters: The number of placeholders.
    """

    sql: str
    text: str
    parameters: int


def translate(sql: str, lexicon: Lexicon) -> Statement:
    """Replace the placeholders ``?`` of JDBC. ``??`` is a question mark, as in PostgreSQL's driver.

    Args:
        sql: A statement.
        lexicon: The syntax of the database.
    """
    doubles_percent = lexicon.placeholder == "%s"
    parts: list[str] = []
    count = position = 0
    while position < len(sql):
        end = _opaque_end(sql, position, lexicon)
        if end > position:
            opaque = sql[position:end]
            parts.append(opaque.replace("%", "%%") if doubles_percent else opaque)
        elif sql.startswith("??", position):
            end = position + 2
            parts.append("?")
        else:
            end = position + 1
            character = sql[position]
            if character == "?":
                count += 1
                character = lexicon.placeholder
            elif character == "%" and doubles_percent:
                character = "%%"
            parts.append(character)
        position = end
    return Statement(sql, "".join(parts), count)


def _opaque_end(sql: str, position: int, lexicon: Lexicon) -> int:
    """Return the end of a literal, quoted name or comment, or the position if there is none."""
    if sql.startswith("/*", position):
        return _comment_end(sql, position, nests=lexicon.nests_comments)
    found = lexicon.opaque.match(sql, position)
    return position if found is None else found.end()


def _comment_end(sql: str, position: int, *, nests: bool) -> int:
    depth, position = 1, position + 2
    while depth and position < len(sql):
        if sql.startswith("*/", position):
            depth, position = depth - 1, position + 2
        elif nests and sql.startswith("/*", position):
            depth, position = depth + 1, position + 2
        else:
            position += 1
    return position
