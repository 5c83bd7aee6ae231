"""Whole records have the same columns in the statements as in the model, in the same order."""

from __future__ import annotations

import re

import pytest

from duetime.model.whole import COLUMNS, PARTS, Kind
from duetime.stores.sql.loader import parse, read

BLOCKS = parse("".join(read("statements", name) for name in ("shared.sql", "moving.sql")))
CALLED = {"unique_key": "key", "trigger_spec": "trigger", "options": "terms"}
WHOLE = {
    ("whole_queue", "put_queues"): COLUMNS[Kind.QUEUES],
    ("whole_gate", "put_gates"): COLUMNS[Kind.GATES],
    ("whole_worker", "put_workers"): COLUMNS[Kind.WORKERS],
    ("whole_job", "put_jobs"): COLUMNS[Kind.JOBS],
    ("whole_schedule", "put_schedules"): COLUMNS[Kind.SCHEDULES],
    ("whole_entry", "put_entries"): COLUMNS[Kind.AUDIT],
    ("whole_attempt", "put_attempts"): PARTS[Kind.JOBS][0],
    ("whole_log", "put_logs"): PARTS[Kind.JOBS][1],
    # The script takes the body of a command apart.
    ("whole_command", "put_commands"): tuple(
        "body" if column == "job" else column for column in PARTS[Kind.WORKERS][0] if column != "reason"
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
