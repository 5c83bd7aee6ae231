"""Options of a schedule that are changed one by one, over those that it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from duetime.model.callbacks import overlay
from duetime.model.overlap import check_turns
from duetime.model.schedule import StoredSchedule
from duetime.model.schedule_options import POLICIES, SHORTEST_WINDOW, ScheduleOptionValues, schedule_options
from duetime.model.task import JobOptions
from duetime.model.terms import Terms


def with_options(
    schedule: StoredSchedule, values: ScheduleOptionValues, *, owner: object | None = None
) -> StoredSchedule:
    """Return a schedule with some options changed; those that are not given stay."""
    given: Mapping[str, Any] = values
    merged = cast("ScheduleOptionValues", {**_policies(schedule, given), **given})
    options = schedule_options(merged, owner=owner)
    limited = Terms.from_text(schedule.terms).gate is not None
    check_turns(options.overlap, options.misfire, task=schedule.task, limited=limited)
    policies = {name: getattr(options, name) for name in POLICIES}
    own = {
        name: getattr(options.job, name)
        for name in ("queue", "priority", "retries", "timeout")
        if name in given
    }
    return replace(schedule, **policies, **own, terms=_terms(schedule, given, options.job).to_text())


def _policies(schedule: StoredSchedule, given: Mapping[str, object]) -> dict[str, object]:
    """Return the policies of a schedule as they would be written; details go with the choice they belong to."""
    found: dict[str, object] = {"overlap": schedule.overlap, "misfire": schedule.misfire}
    found["pause_after"] = schedule.pause_after
    if schedule.overlap_limit is not None and given.get("overlap", schedule.overlap) == schedule.overlap:
        found["overlap_limit"] = schedule.overlap_limit
    if given.get("misfire", schedule.misfire) == schedule.misfire:
        found["misfire_window"] = timedelta(microseconds=max(schedule.misfire_window, SHORTEST_WINDOW))
        if schedule.misfire == "all":
            found["misfire_limit"] = schedule.misfire_limit
    return found


def _terms(schedule: StoredSchedule, given: Mapping[str, object], options: JobOptions) -> Terms:
    """Return the terms of a schedule with those changed that are given; callbacks one by one."""
    before = Terms.from_text(schedule.terms)
    names = ("expires", "tags", "result_ttl", "failure_ttl")
    fresh: dict[str, Any] = {name: getattr(options.terms, name) for name in names if name in given}
    return replace(before, **fresh, callbacks=overlay(before.callbacks, options.terms.callbacks))
