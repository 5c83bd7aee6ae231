"""The options of a schedule, checked where they are written, and changed one by one over those it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, cast, get_args

from duetime.errors import InvalidOption
from duetime.model.callbacks import overlay
from duetime.model.job import JobTerms
from duetime.model.schedule.firing import check_turns
from duetime.model.schedule.record import (
    DEFAULT_MISFIRE_LIMIT,
    DEFAULT_MISFIRE_WINDOW,
    Misfire,
    Overlap,
    StoredSchedule,
)
from duetime.model.task import CommonOptionValues, JobOptions, JobOptionValues, check_known, job_options
from duetime.model.text import check_choice, check_whole
from duetime.model.time import LONGEST_DURATION, SECOND, Duration, Micros, describe_duration, parse_duration

DEFAULT_OVERLAP_LIMIT = 10
MOST_WAITING = 1_000
MOST_MISSED = 10_000
MOST_FAILURES = 100

SHORTEST_WINDOW: Micros = SECOND
"""Every job is late by some milliseconds; with a shorter window, jobs in time would count as missed."""
_WINDOWS = {"latest": DEFAULT_MISFIRE_WINDOW, "all": LONGEST_DURATION, "skip": 10 * SECOND}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """The policies of a schedule, and the options of its jobs."""

    overlap: Overlap = "skip"
    overlap_limit: int | None = None
    misfire: Misfire = "latest"
    misfire_window: Micros = DEFAULT_MISFIRE_WINDOW
    misfire_limit: int = DEFAULT_MISFIRE_LIMIT
    pause_after: int | None = None
    job: JobOptions
    """What its jobs ask for; `None` leaves it to the task."""


class ScheduleOptionValues(CommonOptionValues, total=False):
    """What users may write for a schedule apart from its trigger, its task and its arguments."""

    overlap: Overlap
    overlap_limit: int
    misfire: Misfire
    misfire_window: Duration
    misfire_limit: int
    pause_after: int | None
    retries: int | None
    timeout: Duration | None
    expires: Duration | None


TASKS_OWN = frozenset({"retries", "timeout", "expires"})
"""Options for which `None` leaves the choice to the task."""
POLICIES = frozenset(ScheduleOptions.__slots__) - {"job"}


def schedule_options(values: ScheduleOptionValues, *, owner: object | None = None) -> ScheduleOptions:
    """Check what a user wrote for a schedule; callbacks must be of the same owner, if one is given."""
    check_known(values, ScheduleOptionValues.__optional_keys__, where="a schedule takes")
    overlap = check_choice(values.get("overlap", "skip"), get_args(Overlap), what="overlap")
    misfire: Misfire = check_choice(values.get("misfire", "latest"), get_args(Misfire), what="misfire")
    window = values.get("misfire_window")
    after = values.get("pause_after")
    left = POLICIES | {name for name in TASKS_OWN if values.get(name) is None}
    rest = {name: value for name, value in values.items() if name not in left}
    return ScheduleOptions(
        overlap=overlap,
        overlap_limit=_overlap_limit(values, overlap),
        misfire=misfire,
        misfire_window=_WINDOWS[misfire] if window is None else _window(window),
        misfire_limit=_misfire_limit(values, misfire),
        pause_after=None if after is None else check_whole(after, 1, MOST_FAILURES, what="pause_after"),
        job=job_options(cast("JobOptionValues", rest), owner=owner),
    )


def _overlap_limit(values: ScheduleOptionValues, overlap: Overlap) -> int | None:
    if overlap == "queue_all":
        given = values.get("overlap_limit", DEFAULT_OVERLAP_LIMIT)
        return check_whole(given, 1, MOST_WAITING, what="overlap_limit")
    if "overlap_limit" in values:
        raise InvalidOption(f"overlap_limit= is for overlap='queue_all', not {overlap!r}")
    return None


def _misfire_limit(values: ScheduleOptionValues, misfire: Misfire) -> int:
    if "misfire_limit" in values and misfire != "all":
        raise InvalidOption(f"misfire_limit= is for misfire='all', not {misfire!r}")
    given = values.get("misfire_limit", DEFAULT_MISFIRE_LIMIT)
    return check_whole(given, 1, MOST_MISSED, what="misfire_limit")


def _window(value: Duration) -> Micros:
    window = parse_duration(value, what="misfire_window")
    if window < SHORTEST_WINDOW:
        least, given = map(describe_duration, (SHORTEST_WINDOW, window))
        raise InvalidOption(f"misfire_window must be at least {least}, not {given}; or use misfire='skip'")
    return window


def with_options(
    schedule: StoredSchedule, values: ScheduleOptionValues, *, owner: object | None = None
) -> StoredSchedule:
    """Return a schedule with some options changed; those that are not given stay."""
    given: Mapping[str, Any] = values
    merged = cast("ScheduleOptionValues", {**_policies(schedule, given), **given})
    options = schedule_options(merged, owner=owner)
    limited = JobTerms.from_text(schedule.terms).gate is not None
    check_turns(options.overlap, options.misfire, task=schedule.task, limited=limited)
    policies = {name: getattr(options, name) for name in POLICIES}
    names = ("queue", "priority", "retries", "timeout")
    own = {name: getattr(options.job, name) for name in names if name in given}
    return replace(schedule, **policies, **own, terms=_terms(schedule, given, options.job).to_text())


def _policies(schedule: StoredSchedule, given: Mapping[str, object]) -> dict[str, object]:
    """Return the policies of a schedule as they would be written; details go with the choice they belong to."""
    names = ("overlap", "misfire", "pause_after")
    found: dict[str, object] = {name: getattr(schedule, name) for name in names}
    if schedule.overlap_limit is not None and given.get("overlap", schedule.overlap) == schedule.overlap:
        found["overlap_limit"] = schedule.overlap_limit
    if given.get("misfire", schedule.misfire) == schedule.misfire:
        found["misfire_window"] = timedelta(microseconds=max(schedule.misfire_window, SHORTEST_WINDOW))
        if schedule.misfire == "all":
            found["misfire_limit"] = schedule.misfire_limit
    return found


def _terms(schedule: StoredSchedule, given: Mapping[str, object], options: JobOptions) -> JobTerms:
    """Return the terms of a schedule with those changed that are given; callbacks one by one."""
    before = JobTerms.from_text(schedule.terms)
    names = ("expires", "tags", "result_ttl", "failure_ttl", "headers")
    fresh: dict[str, Any] = {name: getattr(options.terms, name) for name in names if name in given}
    return replace(before, **fresh, callbacks=overlay(before.callbacks, options.terms.callbacks))
