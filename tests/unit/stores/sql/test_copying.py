"""Whole records have the same columns in the statements as in the model, in the same order."""

from __future__ import annotations

import re

import pytest

from duetime.model.store_copy import COLUMNS, PART_COLUMNS, RecordKind
from duetime.stores.sql.statements.loader import FOLDER, parse

BLOCKS = parse((FOLDER / "copying.sql").read_text())
CALLED = {"unique_key": "key", "trigger_spec": "trigger", "options": "terms"}
WHOLE = {
    "whole_queue": COLUMNS[RecordKind.QUEUES],
    "whole_gate": COLUMNS[RecordKind.GATES],
    "whole_worker": COLUMNS[RecordKind.WORKERS],
    "whole_job": COLUMNS[RecordKind.JOBS],
    "whole_schedule": COLUMNS[RecordKind.SCHEDULES],
    "whole_entry": COLUMNS[RecordKind.AUDIT],
    "whole_attempt": PART_COLUMNS[RecordKind.JOBS][0],
    "whole_log": PART_COLUMNS[RecordKind.JOBS][1],
    # The script takes the body of a command apart.
    "whole_command": tuple(
        "body" if column == "job" else column
        for column in PART_COLUMNS[RecordKind.WORKERS][0]
        if column != "reason"
    ),
}


@pytest.mark.parametrize("fragment", WHOLE, ids=str)
def test_columns_are_those_of_the_model(fragment: str) -> None:
    columns = [column.split()[0] for column in re.split(r",\s+", BLOCKS["fragment", fragment])]
    assert tuple(CALLED.get(column, column) for column in columns) == WHOLE[fragment]
