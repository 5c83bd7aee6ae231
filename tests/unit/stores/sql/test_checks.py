"""What `doctor` makes of the settings of a server."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from duetime.stores.base import DoctorCheck
from duetime.stores.sql.driver import Row, Script, play
from duetime.stores.sql.mariadb.checks import examine as examine_mariadb
from duetime.stores.sql.postgres.checks import examine as examine_postgres

POSTGRES = ("15.4", "read committed", "on", "on", False)
MARIADB = {
    "version": "10.11.6-MariaDB",
    "transaction_isolation": "READ-COMMITTED",
    "log_bin": "ON",
    "binlog_format": "MIXED",
    "innodb_flush_log_at_trx_commit": "1",
    "sync_binlog": "1",
    "read_only": "OFF",
}

pytestmark = pytest.mark.covers("unexplained-database")


def failing(script: Script[list[DoctorCheck]], rows: Sequence[Row]) -> list[str]:
    """The names of what is wrong, each of which has to come with what to do."""
    found = [check for check in play(script, lambda _: list(rows)) if not check.ok]
    assert all(check.fix for check in found)
    return [check.name for check in found]


@pytest.mark.parametrize(
    ("place", "value", "name"),
    [
        (1, "repeatable read", "isolation"),
        (2, "off", "durability"),
        (3, "off", "durability"),
        (4, True, "writable"),
    ],
)
def test_each_setting_of_a_postgresql_that_weakens_a_promise_is_found(
    place: int, value: object, name: str
) -> None:
    assert failing(examine_postgres(pooled=False), [POSTGRES]) == []
    weak = [*POSTGRES]
    weak[place] = value
    assert failing(examine_postgres(pooled=False), [weak]) == [name]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, []),
        ({"transaction_isolation": "REPEATABLE-READ"}, ["isolation"]),
        ({"binlog_format": "STATEMENT"}, ["binlog"]),
        ({"binlog_format": "STATEMENT", "log_bin": "OFF"}, []),
        ({"innodb_flush_log_at_trx_commit": "2"}, ["durability"]),
        ({"sync_binlog": "0"}, ["durability"]),
        ({"sync_binlog": "0", "log_bin": "OFF"}, []),
        ({"read_only": "ON"}, ["writable"]),
    ],
    ids=str,
)
def test_each_setting_of_a_mariadb_that_weakens_a_promise_is_found(
    changes: dict[str, str], names: list[str]
) -> None:
    assert failing(examine_mariadb(), [*(MARIADB | changes).items()]) == names
