"""What can be wrong with a PostgreSQL and the way to it."""

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


def examine(*, pooled: bool) -> Script[list[DoctorCheck]]:
    """Look at the server's version and settings, and at what is between it and us."""
    rows = yield Query(_EXAMINE, {})
    version, isolation, synchronous, fsync, read_only = rows[0]
    return [
        # An older one is refused when we connect.
        DoctorCheck(name="version", ok=True, detail=f"PostgreSQL {version}"),
        DoctorCheck(
            name="isolation",
            ok=isolation == "read committed",
            detail=f"our transactions are {isolation}",
            fix=None if isolation == "read committed" else "let the pooler pass our BEGIN on unchanged",
        ),
        DoctorCheck(
            name="durability",
            ok=synchronous != "off" and fsync == "on",
            detail=f"synchronous_commit is {synchronous}, fsync is {fsync}",
            fix=None
            if synchronous != "off" and fsync == "on"
            else "set both to on, or accept that a crash of the server loses what was just accepted",
        ),
        DoctorCheck(
            name="writable",
            ok=not read_only,
            detail="the server is read-only" if read_only else "the server accepts changes",
            fix="connect to the primary, or end default_transaction_read_only" if read_only else None,
        ),
        _way(pooled=pooled),
    ]


def _way(*, pooled: bool) -> DoctorCheck:
    if not pooled:
        return DoctorCheck(name="connection", ok=True, detail="straight to the server")
    return DoctorCheck(
        name="connection",
        ok=False,
        detail="through a pooler that shares sessions: hints of other processes are not heard (workers poll instead), "
        "and a dead worker is noticed only when its lease ends",
        fix="give workers a URL that leads straight to the server",
    )
