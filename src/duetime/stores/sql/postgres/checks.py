"""What `doctor` looks for on a PostgreSQL server."""

from __future__ import annotations

from typing import Final

from duetime.stores.base import DoctorCheck
from duetime.stores.sql.driver import Query, Script, Statement

_EXAMINE: Final = Statement(
    "examine",
    """
    SELECT current_setting('server_version'), current_setting('transaction_isolation'),
           current_setting('synchronous_commit'), current_setting('fsync'),
           pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'
    """,
    (),
)
_POOLED: Final = (
    "through a pooler that shares sessions: hints of other processes are not heard (workers poll instead), "
    "and a dead worker is noticed only when its lease ends"
)


def examine(*, pooled: bool) -> Script[list[DoctorCheck]]:
    """Look at the server's version and settings, and at what is between it and us."""
    [(version, isolation, synchronous, fsync, read_only)] = yield Query(_EXAMINE, {})
    committed, durable = isolation == "read committed", synchronous != "off" and fsync == "on"
    lost = "set both to on, or accept that a crash of the server loses what was just accepted"
    primary = "connect to the primary, or end default_transaction_read_only"
    accepts = "the server is read-only" if read_only else "the server accepts changes"
    way = _POOLED if pooled else "straight to the server"
    found = (
        # An older one is refused when we connect.
        ("version", True, f"PostgreSQL {version}", None),
        ("isolation", committed, f"our transactions are {isolation}", "let the pooler pass our BEGIN on"),
        ("durability", durable, f"synchronous_commit is {synchronous}, fsync is {fsync}", lost),
        ("writable", not read_only, accepts, primary),
        ("connection", not pooled, way, "give workers a URL that leads straight to the server"),
    )
    return [DoctorCheck.of(*one) for one in found]
