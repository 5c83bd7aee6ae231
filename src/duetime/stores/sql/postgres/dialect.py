"""PostgreSQL's words."""

from __future__ import annotations

from typing import Final

from duetime.stores.sql.statements.loader import Columns, ColumnTexts, Dialect

_READ: Final = {
    "text": "r.value ->> {n}",
    "int": "(r.value ->> {n})::bigint",
    "real": "(r.value ->> {n})::real",
}


def _each(parameter: str, columns: Columns) -> str:
    """Read a batch, and let the planner take it for a single row.

    By itself it would reckon with a hundred, and read a table of ten thousand jobs from end to end rather than
    look up one of them. The condition, which is always true, looks selective.
    """
    listed = ", ".join(f"{_READ[kind].format(n=n)} AS {name}" for n, (name, kind) in enumerate(columns))
    # Sent as text, whatever codec the caller's own connection may have for jsonb.
    source = f"jsonb_array_elements(:{parameter}::text::jsonb) AS r (value)"
    return f"(SELECT {listed} FROM {source} WHERE jsonb_typeof(r.value) = 'array')"  # noqa: S608 -- built from our own files


def _commented(text: str, said: ColumnTexts) -> str:
    """Add one statement: each would be a way to the server of its own."""
    listed = [
        f"    COMMENT ON COLUMN {{{table}}}.{column} IS '{each}';\n" for (table, column), each in said.items()
    ]
    return f"{text}\nDO $$ BEGIN\n{''.join(listed)}    END $$;\n"


# The statement's time rather than the clock's, which the planner could not use as the bound of an index.
_NOW: Final = "coalesce(:now::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint)"

POSTGRES = Dialect(
    folder="postgres",
    now=_NOW,
    now_once=f"(SELECT {_NOW})",
    each=_each,
    locking="FOR UPDATE",
    skip_locked="FOR UPDATE OF {0} SKIP LOCKED",
    index="",
    parameter=lambda _, n: f"${n}",
    commented=_commented,
    storing=("WITH stored AS (\n", "\n)\nSELECT {now}"),
    slow_on_conflict=True,
    claims_per_statement=True,
)
