"""SQLite's words."""

from __future__ import annotations

from duetime.stores.sql.statements.loader import Columns, Dialect


def _each(parameter: str, columns: Columns) -> str:
    listed = ", ".join(f"json_extract(value, '$[{n}]') AS {name}" for n, (name, _) in enumerate(columns))
    return f"(SELECT {listed} FROM json_each(:{parameter}))"  # noqa: S608 -- built from our own files


SQLITE = Dialect(
    folder="sqlite",
    now=":now",
    now_once=":now",
    each=_each,
    # A transaction that writes is the only one.
    locking="",
    skip_locked="",
    # With statistics of a table that has one queue, the planner would build an index of its own for each probe.
    index="INDEXED BY {{{1}}}_{0}",
    # By place: to look up each name anew takes a seventh of the time of a statement that stores one job, and Python 3.12
    # before 3.12.4 takes numbers for names, with a warning for each.
    parameter=lambda _name, _place: "?",
    repeats=True,
    # Half the time of UPDATE ... FROM a batch; for INSERT there is no difference. And no plan that goes through all
    # schedules for each row of the batch, as it does with statistics of a time when they were few.
    unrolled=frozenset({"fire", "mark_started", "rewind", "settle"}),
    claims_per_statement=False,
)
