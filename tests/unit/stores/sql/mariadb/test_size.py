"""A dialect is small: what all SQL stores share is written once."""

from __future__ import annotations

import ast
from pathlib import Path

from duetime.stores.sql import mariadb

FOLDER = Path(mariadb.__path__[0])
MOST = 450


def lines_of_python(path: Path) -> int:
    """Count the lines of code, without docstrings, comments and blank lines."""
    text = path.read_text()
    explained: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            explained.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in explained
        for number, line in enumerate(text.splitlines(), 1)
    )


def lines_of_sql(path: Path) -> int:
    """Count the lines of statements, and of what names them."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    return sum(
        bool(line) and (not line.startswith("--") or line.startswith(("-- name:", "-- fragment:")))
        for line in lines
    )


def test_mariadb_has_little_of_its_own() -> None:
    # Without hints, which no other SQL store carries in rows, and without what keeps the driver from giving passwords
    # away: neither has anything to do with the dialect.
    modules = (path for path in FOLDER.glob("*.py") if path.stem not in {"hints", "password_guard"})
    code = sum(lines_of_python(path) for path in modules)
    assert code + sum(map(lines_of_sql, FOLDER.glob("*.sql"))) <= MOST
