"""The tables: their version, the steps that bring them up to date, and the identity of the store in them.

A step is a file of plain statements whose last one notes the new version; all missing steps are one transaction.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple, cast

from duetime.errors import InvalidTransaction, SchemaMismatch
from duetime.stores.base import SchemaStatus
from duetime.stores.sql.driver import Query, Script, Statement
from duetime.stores.sql.statements.loader import (
    ColumnTexts,
    Dialect,
    PlaceholderFiller,
    Statements,
    files,
    fragments,
)
from duetime.stores.sql.transactions.caller import ANOTHER_DATABASE
from duetime.version import VERSION

_COMMENT_LINE = re.compile(r"^--.*$", re.MULTILINE)
_STATEMENT_END = re.compile(r";[ \t]*(?:\n(?! )|$)")
_TABLE = re.compile(r"^CREATE TABLE \{(\w+)\} \($(.*?)^\)", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r"^    (\w+) .* -- (.*)$", re.MULTILINE)


class Migration(NamedTuple):
    """One numbered step."""

    version: int
    name: str
    text: str

    def statements(self) -> list[str]:
        """Split the text at the semicolons that end its statements; behind others comes an indented line."""
        bare = _COMMENT_LINE.sub("", self.text)
        return [part.strip() for part in _STATEMENT_END.split(bare) if part.strip()]


@cache
def migrations(dialect: Dialect, namespace: str) -> tuple[Migration, ...]:
    """Return every step, oldest first, with the table names of a namespace; a dialect may have a file of its own for one.

    The comments in the shared file say what the columns hold, on all databases.
    """
    fill = PlaceholderFiller(dialect, namespace, {**fragments(dialect), "code": VERSION})
    shared, own = _texts("."), _texts(dialect.folder)
    return tuple(
        Migration(int(n), name, fill(dialect.commented(own.get(step, text), column_texts(text))))
        for step, text in sorted(shared.items())
        for n, _, name in [step.partition("_")]
    )


def _texts(folder: str) -> dict[str, str]:
    return {file.stem: file.read_text("utf-8") for file in files(folder, "migrations")}


def column_texts(text: str) -> ColumnTexts:
    """Return what the comments of a step say of each column."""
    tables = _TABLE.findall(text)
    return {(table, column): said for table, body in tables for column, said in _COLUMN.findall(body)}


def read_status(sql: Statements, steps: tuple[Migration, ...]) -> Script[SchemaStatus]:
    """Compare the tables with the steps there are."""
    found, moved = yield from _read_version(sql)
    pending = tuple(f"{step.version:04}_{step.name}" for step in steps if step.version > found)
    return SchemaStatus(found=found, wanted=steps[-1].version, pending=pending, moved=moved)


def migrate(sql: Statements, steps: tuple[Migration, ...]) -> Script[SchemaStatus]:
    """Apply the missing steps in one transaction; a second process finds nothing left to do."""
    yield Query(sql.migration_lock, {})
    found, moved = yield from _read_version(sql)
    for step in steps:
        if step.version > found:
            for text in step.statements():
                yield Query(Statement("migrate", text, ()), {})
    return SchemaStatus(found=max(found, steps[-1].version), wanted=steps[-1].version, moved=moved)


def uninstall(sql: Statements, *, dry_run: bool) -> Script[dict[str, int]]:
    """Drop all tables of the namespace, the one with the version last; return how many rows each had."""
    yield Query(sql.migration_lock, {})
    rows: dict[str, int] = {}
    for name, _ in sorted((yield Query(sql.tables, {})), key=lambda found: (found[1], found[0])):
        [(rows[name],)] = yield _of_table(sql.count_rows, name)
    for name in () if dry_run else rows:
        yield _of_table(sql.drop_table, name)
    return rows


def _of_table(statement: Statement, name: str) -> Query:
    """Fill in the name of a table of ours, which holds nothing that would have to be quoted."""
    return Query(statement._replace(sql=statement.sql.replace("$table", name)), {})


def pending_sql(steps: tuple[Migration, ...], found: int) -> str:
    """Return the text of the missing steps as one transaction, for people who apply it themselves."""
    missing = [step.text for step in steps if step.version > found]
    return "\n".join(["BEGIN;\n", *missing, "COMMIT;\n"]) if missing else ""


def check_version(status: SchemaStatus, *, url: str) -> None:
    """Raise `SchemaMismatch`, with the way out, unless the tables fit this code."""
    if status.found > status.wanted:
        raise SchemaMismatch(
            f"the tables are version {status.found}, this code knows up to {status.wanted}; upgrade duetime"
        )
    if status.found < status.wanted:
        state = f"the tables are version {status.found}" if status.found else "there are no tables yet"
        raise SchemaMismatch(f"{state}, this code needs {status.wanted}; run `duetime migrate --url {url}`")


def _has_version(sql: Statements) -> Script[bool]:
    """Whether the table with the version is there."""
    return any(found[1] for found in (yield Query(sql.tables, {})))


def _read_version(sql: Statements) -> Script[tuple[int, str | None]]:
    """Return the version of the tables, and where the work goes on if it was moved from them."""
    if not (yield from _has_version(sql)):
        return 0, None
    [(version, moved)] = yield Query(sql.schema_version, {})
    return version, moved


def identity(sql: Statements) -> Script[str | None]:
    """Return what the store is called, or None where there are no tables of ours."""
    if not (yield from _has_version(sql)):
        return None
    [(name,)] = yield Query(sql.store_id, {})
    return cast("str | None", name)


def check_identity(sql: Statements, expected: str) -> Script[None]:
    """Raise `InvalidTransaction` unless the connection sees the store that is meant; it sees some store's tables."""
    found = yield Query(sql.store_id, {})
    if not found or found[0][0] != expected:
        raise InvalidTransaction(ANOTHER_DATABASE)
