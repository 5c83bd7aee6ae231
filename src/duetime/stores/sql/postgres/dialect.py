"""PostgreSQL's words."""

from __future__ import annotations

from typing import Final

from duetime.stores.sql.dialect import Columns, Dialect

_READ: Final = {"text": "r.value ->> {n}", "int": "(r.value ->> {n})::bigint"}


def _each(parameter: str, columns: Columns) -> str:
    listed = ", ".join(f"{_READ[kind].format(n=n)} AS {name}" for n, (name, kind) in enumerate(columns))
    # Sent as text, whatever codec the caller's own connection may have for jsonb.
    return f"(SELECT {listed} FROM jsonb_array_elements(:{parameter}::text::jsonb) AS r (value))"  # noqa: S608 -- built from our own files


POSTGRES = Dialect(
    folder="postgres",
    # The statement's time rather than the clock's, which the planner could not use as the bound of an index.
    now="coalesce(:now::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint)",
    each=_each,
    locking="FOR UPDATE",
    skip_locked="FOR UPDATE OF {0} SKIP LOCKED",
    parameter=lambda _, n: f"${n}",
    claims_per_statement=True,
)
