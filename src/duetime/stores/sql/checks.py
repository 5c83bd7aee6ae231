"""What `doctor` looks for on SQL databases: tables that fit, and a server that takes changes and is set up safely."""

from __future__ import annotations

import random
from typing import Final

from duetime.errors import StoreError
from duetime.model.ids import new_job_id
from duetime.stores.base import DoctorCheck, SchemaStatus
from duetime.stores.sql.driver import Driver, Query, Script, Statement
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import encode_batch

_WRITTEN_ON_TRIAL: Final = 64 * 1024
"""How much is written to see that there is room, in characters; more than what is left of a page by chance."""

_EXAMINE_POSTGRES: Final = Statement(
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
_MARIADB_NAMES = "version tx_isolation transaction_isolation log_bin binlog_format innodb_flush_log_at_trx_commit sync_binlog read_only"
_EXAMINE_MARIADB = Statement(
    "examine", f"SHOW VARIABLES WHERE variable_name IN {tuple(_MARIADB_NAMES.split())}", ()
)


def check_schema(status: SchemaStatus, *, url: str) -> DoctorCheck:
    """Tell whether the tables are those that this code needs."""
    detail = f"tables are version {status.found}, this code needs {status.wanted}"
    return DoctorCheck.of("schema", status.found == status.wanted, detail, f"duetime migrate --url {url}")


async def check_writes(driver: Driver, sql: Statements) -> DoctorCheck:
    """Tell whether a change can be made: a full disk, a right that is missing or a lock show only then."""
    try:
        await driver.write(lambda: _write_and_remove(sql))
    except StoreError as error:
        return DoctorCheck.refused("writes", error)
    return DoctorCheck.of("writes", ok=True, detail="a row was written and removed")


def _write_and_remove(sql: Statements) -> Script[None]:
    """Keep a try of a job that there is not, and forget it, before anyone can see it."""
    job_id, text = new_job_id(), random.randbytes(_WRITTEN_ON_TRIAL // 2).hex()
    kept = (job_id, 1, "", 0, None, None, "doctor", None, text)
    yield Query(sql.add_attempts, {"rows": encode_batch([kept])})
    yield Query(sql.delete_attempts, {"rows": encode_batch([(job_id,)])})


def examine_postgres(*, pooled: bool) -> Script[list[DoctorCheck]]:
    """Look at the server's version and settings, and at what is between it and us."""
    [(version, isolation, synchronous, fsync, read_only)] = yield Query(_EXAMINE_POSTGRES, {})
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


def examine_mariadb() -> Script[list[DoctorCheck]]:
    """Look at the server's version and settings."""
    its = {str(name): str(value) for name, value in (yield Query(_EXAMINE_MARIADB, {}))}
    isolation = its.get("transaction_isolation") or its["tx_isolation"]
    logs, binlog, read_only = its["log_bin"] == "ON", its.get("binlog_format", "ROW"), its["read_only"]
    flush, sync = its["innodb_flush_log_at_trx_commit"], its["sync_binlog"]
    committed, durable = isolation == "READ-COMMITTED", flush == "1" and (sync == "1" or not logs)
    lost = "set both to 1, or accept that a crash of the server loses what was just accepted"
    found = (
        ("version", True, f"the server is {its['version']}", None),
        ("isolation", committed, f"our transactions are {isolation}", "let proxies pass our SET on"),
        ("binlog", not logs or binlog != "STATEMENT", f"binlog_format is {binlog}", "set it to ROW"),
        ("durability", durable, f"innodb_flush_log_at_trx_commit is {flush}, sync_binlog {sync}", lost),
        ("writable", read_only == "OFF", f"read_only is {read_only}", "connect to the primary"),
    )
    return [DoctorCheck.of(*one) for one in found]
