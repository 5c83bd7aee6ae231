"""MariaDB's words."""

from __future__ import annotations

import re
from typing import Final

from duetime.stores.sql.statements.loader import Columns, ColumnTexts, Dialect

ON_MYSQL: Final = ("utf8mb4_nopad_bin", "utf8mb4_0900_bin")
"""A collation that takes texts letter by letter, and what MySQL calls it."""
_TYPES: Final = {"text": f"longtext CHARSET utf8mb4 COLLATE {ON_MYSQL[0]}", "int": "bigint", "real": "double"}


def _each(parameter: str, columns: Columns) -> str:
    listed = ", ".join(f"{name} {_TYPES[kind]} PATH '$[{n}]'" for n, (name, kind) in enumerate(columns))
    return f"json_table(:{parameter}, '$[*]' COLUMNS ({listed}))"


def _commented(text: str, said: ColumnTexts) -> str:
    """Add to each column what it holds; a check comes last."""
    table = ""

    def write(found: re.Match[str]) -> str:
        nonlocal table
        table = found[1] or table
        each = said.get((table, found[3]))
        return found[0] if each is None else f"{found[2]} COMMENT '{each}'{found[4]}"

    return re.sub(
        r"^CREATE TABLE .*\{(\w+)\}.*$|^(    (\w+) .*?)((?: CHECK .*?)?,?)$", write, text, flags=re.MULTILINE
    )


# No unix_timestamp: it goes astray when clocks are set back, in a session of a caller that is not in UTC.
_NOW: Final = "coalesce(:now, timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)))"

MARIADB = Dialect(
    folder="mariadb",
    now=_NOW,
    now_once=_NOW,
    # The answer carries it as the last id; a caller may still need the last id of its own.
    stored_at="if(:ours, last_insert_id({0}), {0})",
    each=_each,
    locking="FOR UPDATE",
    current="LOCK IN SHARE MODE",
    in_order="STRAIGHT_JOIN",
    by_key="FORCE INDEX (PRIMARY)",
    skip_locked="FOR UPDATE SKIP LOCKED",
    index="FORCE INDEX ({{{1}}}_{0})",
    parameter=lambda name, _: f"%({name})s",
    claims_per_statement=False,
    in_steps=True,
    commented=_commented,
    words=(("AS text)", "AS char)"), ("AS bigint)", "AS signed)"), ("AS MATERIALIZED (", "AS (")),
)
