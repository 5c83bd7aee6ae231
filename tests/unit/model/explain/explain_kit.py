"""A schedule that runs at three every night, and what is told of a Sunday."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from duetime.model.explain.facts import ScheduleFacts, ask_about
from duetime.model.explain.schedule import schedule_explanation
from duetime.model.schedule.record import StoredSchedule
from duetime.model.states import State
from duetime.model.stored.audit import StoredAuditEntry
from duetime.model.stored.jobs import StoredJob, StoredWorker
from duetime.model.time import DAY, HOUR, SECOND, Instant, from_datetime
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.cron import cron
from tests.unit.model.explain.test_job import JOB, WORKER

BERLIN = "Europe/Berlin"
SUNDAY = datetime(2026, 11, 15, 3, 0)  # noqa: DTZ001 - as people write it
THREE: Instant = from_datetime(datetime(2026, 11, 15, 2, 0, tzinfo=UTC))
NOW: Instant = THREE + 5 * HOUR
NIGHTLY = cron("0 3 * * *", tz=BERLIN)
ALIVE = replace(WORKER, beat_at=NOW, lease_until=NOW + 30 * SECOND, tasks=("report",))


def text_of(trigger: Trigger) -> str:
    return json.dumps(trigger.to_spec())


SCHEDULE = StoredSchedule(
    name="nightly",
    task="report",
    payload="{}",
    trigger=text_of(NIGHTLY),
    declared="",
    fired_through=THREE,
    next_at=THREE + DAY,
    rev=1,
    created_at=THREE - 40 * DAY,
)


def record(**changes: Any) -> StoredJob:
    """A record of the occurrence on Sunday."""
    values: dict[str, Any] = {
        "occurrence": THREE,
        "due_at": THREE,
        "created_at": THREE,
        "schedule": "nightly",
        "task": "report",
    }
    return replace(JOB, **values | changes)


def skipped(reason: str, **changes: Any) -> StoredJob:
    return record(
        **{"state": State.SKIPPED, "reason": reason, "finished_at": NOW, "created_at": NOW} | changes
    )


def entry(verb: str, when: Instant, **detail: Any) -> StoredAuditEntry:
    return StoredAuditEntry(
        id=f"{when:020}", at=when, who="ada@desk", verb=verb, target="nightly", detail=detail
    )


def told(
    *,
    schedule: Mapping[str, Any] | StoredSchedule | None = MappingProxyType({}),
    asked: datetime | None = SUNDAY,
    trigger: Trigger = NIGHTLY,
    workers: tuple[StoredWorker, ...] = (ALIVE,),
    tz: str = BERLIN,
    **facts: Any,
) -> str:
    """The whole explanation in one text."""
    if isinstance(schedule, Mapping):
        schedule = replace(SCHEDULE, trigger=text_of(trigger), **schedule)
    given = ScheduleFacts(
        now=facts.pop("now", NOW),
        name="nightly",
        schedule=schedule,
        question=None if asked is None else ask_about(asked, tz),
        workers=workers,
        tz=tz,
        **facts,
    )
    return "\n".join(text for _, text in schedule_explanation(given))
