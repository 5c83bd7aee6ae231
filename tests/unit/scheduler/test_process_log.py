from __future__ import annotations

import logging

import pytest

from duetime.scheduler.processes.worker_process import ConsoleFormatter, JsonFormatter


def raised(message: str) -> logging.LogRecord:
    """A record of a job's own code, as `log.exception` makes it."""
    with pytest.raises(ValueError, match="x") as caught:
        raise ValueError(message)
    exc_info = caught.type, caught.value, caught.tb
    return logging.getLogger("app").makeRecord("app", logging.ERROR, "f", 1, "oh\nno", (), exc_info)


def test_only_the_first_line_of_a_record_begins_at_the_margin() -> None:
    text = ConsoleFormatter().format(raised("x\n2026-01-01 ERROR app: forged\x1b[2J"))
    first, *rest = text.split("\n")
    assert first.endswith(r"ERROR    app: oh\nno")
    assert rest[0] == "  Traceback (most recent call last):"
    assert rest[-1] == r"  2026-01-01 ERROR app: forged\x1b[2J"
    assert all(line.startswith("  ") for line in rest)


def test_a_traceback_that_is_indented_already_stays_as_it_is() -> None:
    record = raised("x")
    record.exc_text = "  Traceback:\n  ValueError: x"
    assert ConsoleFormatter().format(record).split("\n")[1:] == ["  Traceback:", "  ValueError: x"]


def test_the_fields_of_a_job_are_in_json_and_others_records_have_none() -> None:
    record = raised("x")
    assert "job_id" not in JsonFormatter().format(record)
    record.name, record.job_id = "duetime.jobs", "j"
    assert '"job_id": "j"' in JsonFormatter().format(record)
