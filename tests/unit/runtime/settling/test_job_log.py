from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextvars import Context
from typing import Any, cast

import pytest

from duetime.model.events import EventKind, kind_of
from duetime.model.outcome import (
    Cancelled,
    Crashed,
    Failed,
    Interrupted,
    Outcome,
    Retry,
    Skipped,
    Snoozed,
    Succeeded,
    decide,
)
from duetime.model.retry import fixed
from duetime.model.time import SECOND
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.running.call_outcome import outcome_of_error, outcome_of_value
from duetime.runtime.settling.job_log import MAX_LINES, RECORD_FIELDS, JobLog, log
from tests.unit.runtime.kit import claim

STARTED = 100 * SECOND
ENDED = STARTED + SECOND // 2


class Clock:
    """An event loop's timers, which fire when the test says so."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, delay: float, callback: Callable[[], None], *, context: Context) -> Timer:
        assert delay == 1
        assert len(context) == 0, "it belongs to no job"
        self.timers.append(Timer(callback))
        return self.timers[-1]

    def second(self) -> None:
        """Let a second pass."""
        for timer in [timer for timer in self.timers if not timer.over]:
            timer.over = True
            timer.callback()


class Timer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.over = False

    def cancel(self) -> None:
        self.over = True


class Desk:
    """A worker's log, to which outcomes are told as the dispatcher does."""

    def __init__(self, *, quiet: int = logging.INFO) -> None:
        self.clock = Clock()
        self.identity = WorkerIdentity(queues=("default",), slots=1)
        loop = cast("asyncio.AbstractEventLoop", self.clock)
        self.log = JobLog(self.identity, quiet=quiet, loop=loop)

    def tell(self, outcome: Outcome, job_id: str = "job", *, retries: int = 0, **changes: Any) -> None:
        """Tell what a run came to."""
        held = claim(job_id, **changes)
        settlement = decide(
            held, outcome, policy=fixed(retries, 8), started_at=STARTED, now=ENDED, rng=random.Random(1)
        )
        kind = kind_of(settlement, cancelling=False)
        assert kind is not None
        self.log.counts[kind] += 1
        if self.log.each or kind is not EventKind.JOB_SUCCEEDED or settlement.result_error is not None:
            self.log.tell(kind, held, settlement, outcome)


@pytest.fixture(autouse=True)
def level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=log.name)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged since the last look."""
    said = [f"{record.levelname} {record.getMessage()}" for record in caplog.records]
    caplog.clear()
    return said


def boom() -> Failed:
    return Failed(error="ValueError: boom", traceback="Traceback (most recent call last):\nValueError: boom")


@pytest.mark.parametrize(
    ("outcome", "changes", "line"),
    [
        (Succeeded(), {}, "INFO job j of task succeeded (attempt 1, 0.5 s)"),
        (
            Succeeded(None, "the result is not JSON"),
            {},
            "ERROR job j of task succeeded (attempt 1, 0.5 s); the result is not JSON",
        ),
        (
            Succeeded(None, "the result is not JSON"),
            {"result_ttl": 0},
            "INFO job j of task succeeded (attempt 1, 0.5 s); the result is not JSON",
        ),
        (boom(), {}, "ERROR job j of task failed (attempt 1, 0.5 s): ValueError: boom"),
        (
            boom(),
            {"retries": 1, "failures": 0},
            "WARNING job j of task failed (attempt 1, 0.5 s) and runs again in 8 s: ValueError: boom",
        ),
        (
            Failed(error="ValueError: boom", wait=3_601 * SECOND),
            {"retries": 1},
            "WARNING job j of task failed (attempt 1, 0.5 s) and runs again in 1 hour 1 second: ValueError: boom",
        ),
        (
            boom(),
            {"retries": 1, "expires_at": ENDED + SECOND},
            "ERROR job j of task failed (attempt 1, 0.5 s): ValueError: boom; another try would come after it expires",
        ),
        (
            Failed(error="timed out after 5 seconds", reason="timeout"),
            {},
            "ERROR job j of task failed (attempt 1, 0.5 s): timed out after 5 seconds",
        ),
        (
            Failed(error="x: expected int", reason="undecodable", final=True),
            {"retries": 5},
            "ERROR job j of task failed (attempt 1, 0.5 s): x: expected int",
        ),
        (
            Crashed(worker="w1", started=True, blamed=True),
            {"on_crash": "fail", "failures": 1},
            "ERROR job j of task failed (attempt 2): worker w1 died while the job ran",
        ),
        (
            Crashed(worker="w1", started=True, blamed=False),
            {},
            "WARNING job j of task was lost (attempt 1) and runs again at once: worker w1 died while the job ran",
        ),
        (
            Interrupted(reason="the worker was stopped"),
            {},
            "WARNING job j of task was interrupted (attempt 1, 0.5 s) and runs again: the worker was stopped",
        ),
        (
            Interrupted(reason="the worker was stopped"),
            {"on_crash": "fail"},
            (
                "WARNING job j of task was interrupted (attempt 1, 0.5 s) and does not run again, as its task asks for: "
                "the worker was stopped"
            ),
        ),
        (
            Cancelled("no longer wanted"),
            {},
            "INFO job j of task was cancelled (attempt 1, 0.5 s): no longer wanted",
        ),
        (Skipped("expired"), {}, "INFO job j of task was skipped: expired"),
        (
            Snoozed(60 * SECOND),
            {},
            "INFO job j of task was put off (attempt 1, 0.5 s) and runs again in 1 minute",
        ),
    ],
)
def test_each_end_of_a_run_has_its_line(
    caplog: pytest.LogCaptureFixture, outcome: Outcome, changes: dict[str, Any], line: str
) -> None:
    desk = Desk()
    desk.tell(outcome, "j", **changes)
    assert lines(caplog) == [line]
    desk.clock.second()
    assert lines(caplog) == [], "all is told"
    assert all(timer.over for timer in desk.clock.timers), "an idle worker has no timer"


def test_successes_of_a_worker_in_an_application_are_for_debugging(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(quiet=logging.DEBUG)
    for _ in range(100):
        desk.tell(Succeeded())
    desk.tell(boom(), "j")
    desk.clock.second()
    assert lines(caplog) == ["ERROR job j of task failed (attempt 1, 0.5 s): ValueError: boom"]
    caplog.set_level(logging.DEBUG, logger=log.name)
    desk.clock.second()
    desk.tell(Succeeded(), "j")
    assert lines(caplog) == ["DEBUG job j of task succeeded (attempt 1, 0.5 s)"]


def test_many_successes_are_one_line_a_second_until_they_are_few_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    for _ in range(MAX_LINES):
        desk.tell(Succeeded())
    desk.clock.second()
    assert len(lines(caplog)) == MAX_LINES, "each has its line"
    for _ in range(1_230):
        desk.tell(Succeeded())
    for _ in range(4):
        desk.tell(boom())
    desk.tell(Cancelled("no longer wanted"))
    desk.clock.second()
    said = lines(caplog)
    assert len(said) == MAX_LINES + 4 + 1
    assert said[-1] == "INFO 1,235 runs ended within a second: 1,230 succeeded, 4 failed, 1 cancelled"
    for count in (500, MAX_LINES):
        for _ in range(count):
            desk.tell(Succeeded())
        desk.clock.second()
        assert lines(caplog) == [f"INFO {count} runs ended within a second: {count} succeeded"]
    desk.tell(Succeeded(), "j")
    assert lines(caplog) == ["INFO job j of task succeeded (attempt 1, 0.5 s)"]


def test_a_result_that_was_lost_has_a_line_also_while_many_succeed(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    for _ in range(MAX_LINES + 1):
        desk.tell(Succeeded())
    lines(caplog)
    for _ in range(MAX_LINES + 1):
        desk.tell(Succeeded(None, "the result is not JSON"), "j")
    assert (
        lines(caplog)
        == ["ERROR job j of task succeeded (attempt 1, 0.5 s); the result is not JSON"] * MAX_LINES
    )
    desk.clock.second()
    assert lines(caplog)[0] == (
        "ERROR 1 more failed or lost their results within a second, without a line each: task 1; "
        "the last was job j: the result is not JSON"
    )


def test_while_many_succeed_the_log_is_not_called_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    for _ in range(MAX_LINES + 1):
        desk.tell(Succeeded())
    monkeypatch.setattr(desk.log, "tell", lambda *_: pytest.fail("it was called"))
    for _ in range(1_000):
        desk.tell(Succeeded())


def test_of_failures_without_end_ten_a_second_are_told_and_the_rest_is_counted_by_task(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    for _ in range(20_000):
        desk.tell(boom())
    desk.tell(Failed(error="OSError: disk full\nfake"), "last", task="other")
    for _ in range(MAX_LINES + 1):
        desk.tell(boom(), retries=1)
    desk.clock.second()
    said = lines(caplog)
    assert len(said) == 2 * MAX_LINES + 2
    assert said[-2:] == [
        (
            r"ERROR 19,991 more failed or lost their results within a second, without a line each: task 19,990, other 1; the last was job last: "
            r"OSError: disk full\nfake"
        ),
        (
            "WARNING 1 more failed or were interrupted within a second, without a line each: task 1; the last was job job: "
            "ValueError: boom"
        ),
    ]
    desk.tell(boom(), "j")
    assert len(lines(caplog)) == 1, "the next second has room again"


def test_what_was_counted_is_told_when_the_worker_stops(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    for _ in range(MAX_LINES + 5):
        desk.tell(Succeeded())
    lines(caplog)
    desk.log.close()
    desk.log.close()
    assert lines(caplog) == ["INFO 15 runs ended within a second: 15 succeeded"]


def test_every_record_has_the_documented_fields_and_none_is_one_of_pythons_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    for _ in range(MAX_LINES + 1):
        desk.tell(boom(), "j", queue="mail", task="send", failures=2)
    desk.clock.second()
    one, *_, many = caplog.records
    assert [vars(one)[name] for name in RECORD_FIELDS] == [
        "j",
        "send",
        "mail",
        3,
        0.5,
        "failed",
        desk.identity.info.id,
    ]
    assert [vars(many)[name] for name in RECORD_FIELDS] == [None] * 6 + [desk.identity.info.id]
    assert not {*RECORD_FIELDS} & {*vars(logging.makeLogRecord({})), "message", "asctime"}
    logging.Formatter("%(job_id)s %(duration)s").format(many)


def test_a_record_brings_the_exception_itself_and_its_traceback_from_the_handler_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(ValueError, match="invalid literal") as caught:
        int("x")
    Desk().tell(outcome_of_error(caught.value))
    [record] = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is caught.value
    assert record.exc_text is not None
    assert record.exc_text.splitlines()[0] == "  Traceback (most recent call last):"


def test_no_text_of_a_job_passes_for_a_record_or_reaches_a_terminal_or_has_no_bound(
    caplog: pytest.LogCaptureFixture,
) -> None:
    forged = "boom\x1b[2J\n2026-01-01 ERROR duetime.jobs: forged\u2028again\r" + "x" * 1_000_000
    desk = Desk()
    desk.tell(outcome_of_error(ValueError(forged)), task="evil\ntask")
    text = logging.Formatter().format(caplog.records[0])
    first, *rest = text.split("\n")
    assert first.startswith(r"job job of evil\ntask failed (attempt 1, 0.5 s): ValueError: boom\x1b[2J\n2026")
    assert len(first) < 1_000
    assert rest
    assert all(line.startswith("  ") and line.isprintable() for line in rest)
    assert len(text) < 20_000


def test_an_exception_without_a_traceback_of_ours_is_left_to_the_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Desk().tell(outcome_of_value(Retry(reason="x" * 100_000)), retries=1)
    assert len(logging.Formatter().format(caplog.records[0])) < 1_000


def test_a_filter_of_the_application_that_raises_does_no_harm(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(record: logging.LogRecord) -> bool:
        raise RuntimeError(record.name)

    log.addFilter(broken)
    try:
        Desk().tell(boom())
    finally:
        log.removeFilter(broken)
    assert "RuntimeError: duetime.jobs" in capsys.readouterr().err


def test_a_record_factory_of_the_application_may_set_fields_of_the_same_names(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def factory(*args: Any, **options: Any) -> logging.LogRecord:
        record = logging.LogRecord(*args, **options)
        record.task = record.job_id = "the application's"
        return record

    monkeypatch.setattr(logging, "_logRecordFactory", factory)
    Desk().tell(boom(), "j")
    (record,) = caplog.records
    assert (vars(record)["job_id"], vars(record)["task"]) == ("j", "task")


def test_a_record_factory_of_the_application_that_raises_does_no_harm(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "_logRecordFactory", lambda *_, **__: 1 // 0)
    Desk().tell(boom())
    assert "ZeroDivisionError" in capsys.readouterr().err
