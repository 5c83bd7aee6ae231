"""`duetime migrate`, and what `duetime doctor` says of tables."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.kit import URL, duetime, from_json


@pytest.mark.parametrize("option", ["--check", "--sql"])
def test_a_look_at_what_is_missing_makes_no_file(folder: Path, option: str) -> None:
    result = duetime("migrate", option, *URL)
    assert result.exit_code == 4
    assert "there is no file jobs.db" in result.stderr
    assert not (folder / "jobs.db").exists()


def test_migrate_prints_checks_and_applies_what_is_missing(folder: Path) -> None:
    (folder / "jobs.db").touch()
    assert duetime("migrate", "--check", *URL).exit_code == 1
    sql = duetime("migrate", "--sql", *URL).stdout
    assert "CREATE TABLE duetime_jobs" in sql
    assert from_json("migrate", "--sql", *URL)["sql"] == sql
    assert "CREATE TABLE billing_jobs" in duetime("migrate", "--sql", "--namespace", "billing", *URL).stdout
    assert duetime("migrate", "--check", *URL).exit_code == 1

    assert from_json("migrate", *URL)["applied"] is True
    assert duetime("migrate", "--check", *URL).exit_code == 0
    assert duetime("migrate", "--sql", *URL).stdout == ""
    assert "up to date" in duetime("migrate", *URL).stdout
    assert duetime("migrate", "--sql", "--check", *URL).exit_code == 2


def test_the_printed_sql_makes_the_tables(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "by_hand.db")) as connection:
        connection.executescript(duetime("migrate", "--sql", "--url", "sqlite:///by_hand.db").stdout)
    assert duetime("migrate", "--check", "--url", "sqlite:///by_hand.db").exit_code == 0


def test_tables_newer_than_the_code_are_left_alone(folder: Path) -> None:
    duetime("migrate", *URL)
    with closing(sqlite3.connect(folder / "jobs.db")) as connection, connection:
        connection.execute(
            "INSERT INTO duetime_meta (version, name, code, applied_at) VALUES (999, 'future', '99.0', 0)"
        )
    result = duetime("migrate", *URL)
    assert result.exit_code == 1
    assert "upgrade duetime" in result.stdout
    assert duetime("jobs", "list", *URL).exit_code == 4


def test_doctor_names_the_fix_for_what_it_finds(folder: Path) -> None:
    (folder / "jobs.db").touch()
    result = duetime("doctor", *URL)
    assert result.exit_code == 1
    assert "schema" in result.stdout
    assert "Fix: duetime migrate --url sqlite:///jobs.db" in result.stdout

    duetime("migrate", *URL)
    result = duetime("doctor", "--json", *URL)
    findings = {finding["name"]: finding["ok"] for finding in json.loads(result.stdout)}
    assert findings["schema"] is True
    assert result.exit_code == (0 if all(findings.values()) else 1)
