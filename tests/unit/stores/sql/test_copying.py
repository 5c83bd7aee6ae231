"""Whole records have the same columns in the statements as in the model, in the same order."""

from __future__ import annotations

import re

import pytest

from duetime.model.store_copy import COLUMNS, PART_COLUMNS, RecordKind
from duetime.stores.sql.statements.loader import parse, read

BLOCKS = parse("".join(read(name) for name in ("shared.sql", "copying.sql")))
CALLED = {"unique_key": "key", "trigger_spec": "trigger", "options": "terms"}
WHOLE = {
    ("whole_queue", "put_queues"): COLUMNS[RecordKind.QUEUES],
    ("whole_gate", "put_gates"): COLUMNS[RecordKind.GATES],
    ("whole_worker", "put_workers"): COLUMNS[RecordKind.WORKERS],
    ("whole_job", "put_jobs"): COLUMNS[RecordKind.JOBS],
    ("whole_schedule", "put_schedules"): COLUMNS[RecordKind.SCHEDULES],
    ("whole_entry", "put_entries"): COLUMNS[RecordKind.AUDIT],
    ("whole_attempt", "put_attempts"): PART_COLUMNS[RecordKind.JOBS][0],
    ("whole_log", "put_logs"): PART_COLUMNS[RecordKind.JOBS][1],
    # The script takes the body of a command apart.
    ("whole_command", "put_commands"): tuple(
        "body" if column == "job" else column
        for column in PART_COLUMNS[RecordKind.WORKERS][0]
        if column != "reason"
    ),
}


@pytest.mark.parametrize("names", WHOLE, ids=lambda names: names[0])
def test_columns_are_those_of_the_model(names: tuple[str, str]) -> None:
    fragment, put = names
    listed = BLOCKS["fragment", fragment].replace("{job_columns}", BLOCKS["fragment", "job_columns"])
    columns = re.split(r",\s+", listed)
    batch = re.search(r"\{each rows: ([^}]*)\}", BLOCKS["name", put])
    assert batch is not None
    assert [column.split()[0] for column in re.split(r",\s+", batch[1])] == columns
    assert tuple(CALLED.get(column, column) for column in columns) == WHOLE[names]
