"""How asyncmy connects to a MariaDB, and what its errors mean."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import asyncmy
from asyncmy.constants.CLIENT import FOUND_ROWS
from asyncmy.cursors import Cursor

from duetime.stores.sql.mariadb.dialect import ON_MYSQL
from duetime.stores.sql.mariadb.password_guard import open_connection
from duetime.stores.sql.pool.cursor_connection import CursorConnector, ServerVariant
from duetime.stores.sql.pool.errors import (
    CONFLICT,
    CONNECTION_LOST,
    DISK_FULL,
    DUPLICATE_KEY,
    LOGIN_REFUSED,
    NEVER_SENT,
    NO_DATABASE,
    NO_RIGHTS,
    NO_SAVEPOINT,
    NO_TABLE,
    NO_TLS,
    READ_ONLY,
    STATEMENT_LOG,
    TIMED_OUT,
    TOO_LARGE,
    TOO_MANY_CONNECTIONS,
    DatabaseLabel,
    ErrorCodes,
)

# Claims come as one long text.
_SETTINGS: Final = """SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin, time_zone = '+00:00', sql_notes = 0, group_concat_max_len = 1073741824,
sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = 4,
"""
# SKIP LOCKED and JSON_TABLE.
_SERVER_VARIANTS: Final = {
    "MariaDB": ServerVariant(
        version=r"(\d+)\.(\d+)\.\d+-MariaDB",
        oldest=(10, 6),
        settings=f"{_SETTINGS} max_statement_time = 30, idle_transaction_timeout = 10",
        bounds="SET idle_transaction_timeout = {}",
    ),
    "MySQL": ServerVariant(
        version=r"^(\d+)\.(\d+)\.(?!.*-MariaDB)",
        oldest=(8, 0),
        settings=f"{_SETTINGS} max_execution_time = 30000",
        bounds="SET wait_timeout = {}",
        spelling=ON_MYSQL,
        carries_hints=False,
    ),
}
_ERROR_CODES: Final = ErrorCodes(
    asyncmy.MySQLError,
    {
        LOGIN_REFUSED: "1044 1045 1130 1698",
        NO_TLS: "2026 3159",
        NO_DATABASE: "1049",
        NO_RIGHTS: "1142 1143 1227",
        NO_TABLE: "1054 1146",
        STATEMENT_LOG: "1665",
        READ_ONLY: "1290 1792 1836",
        DISK_FULL: "1021 1114",
        TOO_MANY_CONNECTIONS: "1040 1203 1226",
        TIMED_OUT: "1969",
        CONNECTION_LOST: "1053 1158 1159 1160 1161 1927 2003 2013 2014",
        NEVER_SENT: "0 2006",
        TOO_LARGE: "1153",
        CONFLICT: "1020 1205 1213",
        DUPLICATE_KEY: "1062",
        NO_SAVEPOINT: "1305",
    },
)


def mariadb_connector(url: str, **options: Any) -> CursorConnector:
    """Return what makes connections to the database that a URL names."""
    return CursorConnector(
        open=partial(open_connection, autocommit=True, client_flag=FOUND_ROWS, **options),
        owned=asyncmy.Connection,
        plain=Cursor,
        accepts="an asyncmy connection",
        alchemy="mysql",
        how="begin one: await connection.begin()",
        place=DatabaseLabel.of(url, "MariaDB"),
        codes=_ERROR_CODES,
        # Its locks are for gaps, too, so that also those collide who want neighbouring rows.
        most_tries=20,
        kinds=_SERVER_VARIANTS,
    )
