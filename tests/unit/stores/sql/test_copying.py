"""Whole records have the same columns in the statements as in the model, in the same order."""

from __future__ import annotations

import re

import pytest

from duetime.model.stored.copy import COLUMNS, PART_COLUMNS, RecordKind
from duetime.stores.sql.copying import _TABLES, _statements, _Table
from duetime.stores.sql.mariadb.dialect import MARIADB
from duetime.stores.sql.postgres.dialect import POSTGRES
from duetime.stores.sql.sqlite.dialect import SQLITE
from duetime.stores.sql.statements.loader import FOLDER, Dialect, PlaceholderFiller, parse

BLOCKS = parse((FOLDER / "copying.sql").read_text())
FILL = PlaceholderFiller(SQLITE, "n", {name: body for (_, name), body in BLOCKS.items()})
CALLED = {"unique_key": "key", "trigger_spec": "trigger", "options": "terms"}
WHOLE = {
    "whole_queues": COLUMNS[RecordKind.QUEUES],
    "whole_gates": COLUMNS[RecordKind.GATES],
    "whole_workers": COLUMNS[RecordKind.WORKERS],
    "whole_jobs": COLUMNS[RecordKind.JOBS],
    "whole_schedules": COLUMNS[RecordKind.SCHEDULES],
    "whole_audit": COLUMNS[RecordKind.AUDIT],
    "whole_attempts": PART_COLUMNS[RecordKind.JOBS][0],
    "whole_logs": PART_COLUMNS[RecordKind.JOBS][1],
    # The script takes the body of a command apart.
    "whole_commands": tuple(
        "body" if column == "job" else column
        for column in PART_COLUMNS[RecordKind.WORKERS][0]
        if column != "reason"
    ),
}


@pytest.mark.parametrize("fragment", WHOLE, ids=str)
def test_columns_are_those_of_the_model(fragment: str) -> None:
    columns = FILL(f"{{names {fragment}}}").split(", ")
    assert tuple(CALLED.get(column, column) for column in columns) == WHOLE[fragment]


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRES, MARIADB], ids=["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize(
    "table", [table for tables in _TABLES.values() for table in tables], ids=lambda t: t.name
)
def test_each_table_has_statements_of_its_own(dialect: Dialect, table: _Table) -> None:
    statements = _statements(dialect, "billing", table)
    for statement in (statements.read, statements.put, statements.remove):
        assert f"billing_{table.name}" in statement.sql
        assert not re.search(r"\$[a-z]|\{", statement.sql)
