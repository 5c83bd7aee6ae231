"""Writes statements anew for a database that has neither UPDATE ... FROM, RETURNING nor ON CONFLICT.

A change that answers becomes three statements of one transaction: lock the rows that match and tell their keys, change
them, and read what is asked for. All three go by the moment of the first.

What is looked up by its key is joined after the batch that names it, and read by the key: a scan of a small table would
wait for rows that others have locked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from duetime.stores.sql.driver import Query, Row, Script, Statement
from duetime.stores.sql.statements.rows import encode_batch

T = TypeVar("T")

PRIMARY_KEYS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    **dict.fromkeys(("jobs", "workers", "commands", "audit", "credentials", "statistics"), (("id", "text"),)),
    **dict.fromkeys(("schedules", "queues", "gates", "locks", "tasks"), (("name", "text"),)),
    "attempts": (("job_id", "text"), ("fence", "int")),
    "logs": (("job_id", "text"), ("fence", "int"), ("line", "int")),
    "meta": (("version", "int"),),
}
"""The primary keys."""

_UPDATE: Final = re.compile(
    r"UPDATE \{(?P<table>\w+)\}(?P<index> \{index [\w ]+\})?\s+SET\s+(?P<changes>.*?)"
    r"(?:\nFROM (?P<source>.*?) AS (?P<alias>\w+))?"
    r"\s+^WHERE (?P<where>.*?)(?:\nRETURNING (?P<columns>.*))?",
    re.DOTALL | re.MULTILINE,
)
_DELETE: Final = re.compile(
    r"DELETE FROM \{(?P<table>\w+)\}\s+WHERE (?P<where>.*?)(?:\nRETURNING (?P<columns>\w+))?", re.DOTALL
)
_LISTED: Final = re.compile(
    r"(?P<column>\w+) IN \(SELECT (?P<named>r\.\w+) FROM (?P<source>(?:\{each [^}]*\}|\(.*\)) AS r)\)(?P<more>.*)",
    re.DOTALL,
)
_NAMED: Final = re.compile(r"\{named\}|\{schedules\}\.name = r\.name")
_INSERT: Final = re.compile(
    r"(?P<body>INSERT INTO \{(?P<table>\w+)\}.*?)(?:\nRETURNING (?P<columns>.*))?", re.DOTALL
)
_ADDED: Final = re.compile(
    r"FROM (?P<source>\{.*\} AS r)\nWHERE true\nON CONFLICT \(\w+\) DO NOTHING", re.DOTALL
)
_NOTHING: Final = re.compile(r"ON CONFLICT (?:\(\w+\) )?DO NOTHING")
_ANYWAY: Final = re.compile(r"ON CONFLICT \(\w+\) DO UPDATE SET")
_EXCLUDED: Final = re.compile(r"excluded\.(\w+)")


class RewrittenStatement(NamedTuple):
    """What a statement becomes: perhaps a choice of rows before it, and an answer after it."""

    change: str
    choice: str | None = None
    answer: str | None = None


def rewrite(body: str) -> RewrittenStatement:
    """Write a statement of `statements/`, its braces not filled in, as such a database understands it."""
    if update := _UPDATE.fullmatch(body):
        return _update(update)
    if delete := _DELETE.fullmatch(body):
        return _delete(body, **delete.groupdict())
    if insert := _INSERT.fullmatch(body):
        return _insert(**insert.groupdict())
    return RewrittenStatement(body)


def _update(update: re.Match[str]) -> RewrittenStatement:
    table, index, changes, source, alias, where, columns = update.groups()
    target = f"{{{table}}}{index or ''}"
    if source is not None:
        target = f"{source} AS {alias}\n{{in_order}} {{{table}}}{index or ' {by_key}'} ON true"
    qualified = _qualified(changes, table)
    if columns is None:
        return RewrittenStatement(f"UPDATE {target}\nSET {qualified}\nWHERE {where}" if source else update[0])
    change = f"UPDATE {_chosen(table)}\nSET {qualified}"
    if alias is not None and re.search(rf"\b{alias}\.", changes):
        # A batch has no index: what names its rows by their keys is not joined with a second one, but cut down to those
        # chosen.
        within = target if _NAMED.match(where) else f"{_chosen(table)}\nJOIN {source} AS {alias} ON true"
        change = f"UPDATE {within}\nSET {qualified}\nWHERE {where}"
    choice = f"SELECT {_keys(table)}, {{now}}\nFROM {target}\nWHERE {where}\n{{locking}}"
    return RewrittenStatement(change, choice, f"SELECT {columns}\nFROM {_chosen(table)}")


def _delete(body: str, *, table: str, where: str, columns: str | None) -> RewrittenStatement:
    # Also without an answer: a DELETE does not look up what a subquery names.
    if columns is None and not ("IN (" in where and "SELECT" in where):
        return RewrittenStatement(body)
    choice = f"SELECT {_keys(table)}, {{now}}\nFROM {_listed(table, where)}\n{{locking}}"
    return RewrittenStatement(f"DELETE {{{table}}} FROM {_chosen(table)}", choice)


def _listed(table: str, where: str) -> str:
    """Return the rows that match, looked up one by one where a list has their keys or what those begin with."""
    key, listed = PRIMARY_KEYS[table][0][0], _LISTED.fullmatch(where)
    if listed is None or listed["column"] != key:
        return f"{{{table}}}\nWHERE {where}"
    same = f"{{{table}}}.{key} = {listed['named']}"
    return f"{listed['source']}\n{{in_order}} {{{table}}} {{by_key}} ON true\nWHERE {same}{listed['more']}"


def _insert(*, body: str, table: str, columns: str | None) -> RewrittenStatement:
    ((key, _), *_) = PRIMARY_KEYS[table]
    if columns is not None and (added := _ADDED.search(body)):
        # The new rows are known before; if another process adds one of them in between, the script runs again.
        there = f"SELECT 1 FROM {{{table}}} AS there WHERE there.{key} = r.{key}"  # noqa: S608 -- built from our own files
        source = added["source"]
        choice = f"SELECT r.{key}, {{now}}\nFROM {source}\nWHERE NOT EXISTS ({there})"
        return RewrittenStatement(f"{body[: added.start()]}FROM {source}", choice)
    body = _NOTHING.sub(f"ON DUPLICATE KEY UPDATE {{{table}}}.{key} = {{{table}}}.{key}", body)
    body = _EXCLUDED.sub(r"VALUES(\1)", _ANYWAY.sub("ON DUPLICATE KEY UPDATE", body))
    answer = () if columns is None else ("SELECT {now}", f"SELECT {columns}")
    return RewrittenStatement(body, *answer)


def _chosen(table: str) -> str:
    """Return the rows that were chosen, joined with the table; no column of both has one name."""
    listed = ", ".join(f"key_{n} {kind}" for n, (_, kind) in enumerate(PRIMARY_KEYS[table]))
    same = " AND ".join(
        f"{{{table}}}.{name} = chosen.key_{n}" for n, (name, _) in enumerate(PRIMARY_KEYS[table])
    )
    return f"{{each chosen: {listed}}} AS chosen {{in_order}} {{{table}}} {{by_key}} ON {same}"


def _keys(table: str) -> str:
    return ", ".join(f"{{{table}}}.{name}" for name, _ in PRIMARY_KEYS[table])


def _qualified(changes: str, table: str) -> str:
    """Say of each column that is set whose it is: what is joined may have one of that name."""
    return ",".join(f" {{{table}}}.{change.strip()}" for change in split(changes))


def split(text: str) -> list[str]:
    """Split at the commas that are not inside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "({") - (letter in ")}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


_BEGIN: Final = Query(Statement("begin", "BEGIN", ()), {})
_COMMIT: Final = Query(Statement("commit", "COMMIT", ()), {})


def unfold(script: Script[T], *, within: bool) -> Script[T]:
    """Run a script in which a statement may be several as one in which each is one.

    `within`: a transaction is open. If not, the steps of each statement get one of their own.
    """
    try:
        query = next(script)
        while True:
            query = script.send((yield from steps_of(query, within=within)))
    except StopIteration as stop:
        answer: T = stop.value
        return answer


def steps_of(query: Query, *, within: bool) -> Script[list[Row]]:
    """Yield the statements that a query takes, and return its answer."""
    statement, params = query
    if statement.choice is None:
        return (yield query)
    if not within:
        yield _BEGIN
    answer = yield Query(statement.choice, params)
    if answer:
        now, keys = answer[0][-1], [row[:-1] for row in answer]
        chosen = {**params, "chosen": encode_batch(keys), "now": now}
        named = "rows" in statement.params and "chosen" not in statement.params
        yield Query(statement, {**chosen, "rows": _cut_down(params["rows"], keys)} if named else chosen)
        answer = keys if statement.answer is None else (yield Query(statement.answer, chosen))
    if not within:
        yield _COMMIT
    return answer


def _cut_down(batch: Any, keys: list[Row]) -> str:
    """Leave in a batch the rows whose first column is one of these keys."""
    wanted = {key for (key,) in keys}
    return encode_batch(row for row in msgspec.json.decode(batch) if row[0] in wanted)
