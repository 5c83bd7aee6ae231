"""How asyncmy connects to a MariaDB, and what its errors mean."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import asyncmy
from asyncmy.constants.CLIENT import FOUND_ROWS
from asyncmy.cursors import Cursor

from duetime.stores.sql.mariadb import caution
from duetime.stores.sql.mariadb.dialect import ON_MYSQL
from duetime.stores.sql.pooled import meanings as mean
from duetime.stores.sql.pooled.cursors import CursorConnector, Kind
from duetime.stores.sql.pooled.errors import Place

# Claims come as one long text.
_SETTINGS: Final = """SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin, time_zone = '+00:00', sql_notes = 0, group_concat_max_len = 1073741824,
sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = 4,
"""
# SKIP LOCKED and JSON_TABLE.
_KINDS: Final = {
    "MariaDB": Kind(
        version=r"(\d+)\.(\d+)\.\d+-MariaDB",
        oldest=(10, 6),
        settings=f"{_SETTINGS} max_statement_time = 30, idle_transaction_timeout = 10",
        bounds="SET idle_transaction_timeout = {}",
    ),
    "MySQL": Kind(
        version=r"^(\d+)\.(\d+)\.(?!.*-MariaDB)",
        oldest=(8, 0),
        settings=f"{_SETTINGS} max_execution_time = 30000",
        bounds="SET wait_timeout = {}",
        spelling=ON_MYSQL,
        carries_hints=False,
    ),
}
_CODES: Final = mean.Codes(
    asyncmy.MySQLError,
    {
        mean.LOGIN: "1044 1045 1130 1698",
        mean.NO_TLS: "2026 3159",
        mean.NO_DATABASE: "1049",
        mean.NO_RIGHTS: "1142 1143 1227",
        mean.NO_TABLE: "1054 1146",
        mean.STATEMENT_LOG: "1665",
        mean.READ_ONLY: "1290 1792 1836",
        mean.DISK_FULL: "1021 1114",
        mean.CROWDED: "1040 1203 1226",
        mean.SLOW: "1969",
        mean.LOST: "1053 1158 1159 1160 1161 1927 2003 2013 2014",
        mean.UNSENT: "0 2006",
        mean.TOO_LARGE: "1153",
        mean.CONFLICT: "1020 1205 1213",
        mean.TAKEN: "1062",
        mean.NO_SAVEPOINT: "1305",
    },
)


def connector(url: str, **options: Any) -> CursorConnector:
    """Return what makes connections to the database that a URL names."""
    return CursorConnector(
        open=partial(caution.connect, autocommit=True, client_flag=FOUND_ROWS, **options),
        owned=asyncmy.Connection,
        plain=Cursor,
        accepts="an asyncmy connection",
        alchemy="mysql",
        how="begin one: await connection.begin()",
        place=Place.of(url, "MariaDB"),
        codes=_CODES,
        # Its locks are for gaps, too, so that also those collide who want neighbouring rows.
        most_tries=20,
        kinds=_KINDS,
    )
