"""The options of a task and of a single request, checked where they are written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypedDict, get_args

from duetime.errors import InvalidOption
from duetime.model import durations
from duetime.model.durations import Duration
from duetime.model.instants import Instant, Micros, from_datetime
from duetime.model.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, FIRST_PRIORITY, LAST_PRIORITY, OnCrash
from duetime.model.names import check_name
from duetime.model.retry import NO_RETRIES, RetryPolicy, check_retries


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """The defaults every job of a task starts from."""

    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    retry: RetryPolicy = NO_RETRIES
    timeout: Micros | None = None
    on_crash: OnCrash = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What one request asks for beside its arguments; `None` leaves it to the task."""

    delay: Micros = 0
    at: Instant | None = None
    queue: str | None = None
    priority: int | None = None
    retries: int | None = None
    timeout: Micros | None = None


class JobOptionValues(TypedDict, total=False):
    """What users may write in `task.options(...)`."""

    delay: Duration
    at: datetime
    queue: str
    priority: int
    retries: int
    timeout: Duration


def job_options(values: JobOptionValues) -> JobOptions:
    """Check what a user wrote for one request."""
    known = JobOptionValues.__optional_keys__
    for name in values:
        if name not in known:
            text = f"unknown option {name!r}; options are {', '.join(sorted(known))}"
            raise InvalidOption(text)
    if "delay" in values and "at" in values:
        text = "give either delay= or at=, not both"
        raise InvalidOption(text)
    return JobOptions(
        delay=durations.parse(values["delay"], what="delay") if "delay" in values else 0,
        at=from_datetime(values["at"], what="at") if "at" in values else None,
        queue=check_name(values["queue"], what="queue") if "queue" in values else None,
        priority=check_priority(values["priority"]) if "priority" in values else None,
        retries=check_retries(values["retries"]) if "retries" in values else None,
        timeout=check_timeout(values["timeout"]) if "timeout" in values else None,
    )


def check_priority(priority: int) -> int:
    """Return the priority, or raise `InvalidOption`."""
    if (
        isinstance(priority, bool)
        or not isinstance(priority, int)
        or not FIRST_PRIORITY <= priority <= LAST_PRIORITY
    ):
        text = f"priority must be a whole number from 0 (first) to 9, not {priority!r}"
        raise InvalidOption(text)
    return priority


def check_timeout(timeout: Duration) -> Micros:
    """Return the timeout in microseconds, or raise when it is not above zero."""
    micros = durations.parse(timeout, what="timeout")
    if micros == 0:
        text = "timeout must be longer than 0; leave it out for no timeout"
        raise InvalidOption(text)
    return micros


def check_on_crash(on_crash: Literal["retry", "fail"]) -> OnCrash:
    """Return the choice, or raise `InvalidOption`."""
    if on_crash not in get_args(OnCrash):
        text = (
            f"on_crash must be 'retry' (run again, at least once) or 'fail' (at most once), not {on_crash!r}"
        )
        raise InvalidOption(text)
    return on_crash
