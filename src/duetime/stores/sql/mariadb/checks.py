"""What `doctor` looks for on a MariaDB server."""

from __future__ import annotations

from typing import Final

from duetime.stores.base import DoctorCheck
from duetime.stores.sql.driver import Query, Script, Statement

_NAMES: Final = "version tx_isolation transaction_isolation log_bin binlog_format innodb_flush_log_at_trx_commit sync_binlog read_only"
_EXAMINE: Final = Statement("examine", f"SHOW VARIABLES WHERE variable_name IN {tuple(_NAMES.split())}", ())


def examine() -> Script[list[DoctorCheck]]:
    """Look at the server's version and settings."""
    its = {str(name): str(value) for name, value in (yield Query(_EXAMINE, {}))}
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
