"""Write `docs/reference/tables.md` from the comments in the migrations, which the databases show as well."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from duetime.stores.sql.schema import column_texts
from duetime.stores.sql.statements.loader import FOLDER

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/tables.md"
HEADER = """\
# Tables in SQL databases

<!-- Written by `make docs` from the comments in src/duetime/stores/sql/migrations; do not edit. -->

The tables are for looking, not for writing: a change by hand passes by what workers know, and by the checks that keep
records whole. Names begin with the namespace, `duetime` unless told otherwise. Instants are microseconds since 1970, in UTC.

The database itself tells the same: `\\d+ duetime_jobs` on PostgreSQL, `SHOW FULL COLUMNS FROM duetime_jobs` on MariaDB, `.schema
duetime_jobs` on SQLite. MariaDB has a few more columns, for its indexes, and a table `duetime_hints`, by which processes tell
each other what has changed.
"""


def page() -> str:
    """Return the text of the page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield HEADER.rstrip()
    texts = (file.read_text("utf-8") for file in sorted((FOLDER / "migrations").glob("*.sql")))
    columns = [column for text in texts for column in column_texts(text).items()]
    for table, listed in groupby(columns, key=lambda one: one[0][0]):
        yield from ("", f"## `duetime_{table}`", "", "| Column | Holds |", "|---|---|")
        for (_, column), said in listed:
            yield f"| `{column}` | {said.rstrip('.').replace('|', chr(92) + '|')} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
