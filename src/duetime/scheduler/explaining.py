"""Explanations as a client reads them: the facts are gathered here, the sentences are the model's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from duetime.model.explain import (
    MOST_TOLD,
    Facts,
    Question,
    ScheduleFacts,
    Sentence,
    ask,
    explain,
    explain_schedule,
    was_made,
)
from duetime.model.instants import LATEST, to_datetime
from duetime.model.job import JobId
from duetime.model.oddities import mended, oddity, unreadable
from duetime.model.stored import StoredJob, StoredWorker
from duetime.scheduler.lookup import find_job, find_schedule
from duetime.stores.base import Store

_MOST_RECORDS = 200
_MOST_ENTRIES = 500
_BEFORE = 50
"""How many jobs before an occurrence are looked at for the one that was in its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One sentence, and when it happened; `None` for what is so now."""

    at: datetime | None
    text: str

    def __str__(self) -> str:
        when = "now" if self.at is None else self.at.strftime("%Y-%m-%d %H:%M:%S")
        return f"{when:19}  {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What happened to a job, and what it waits for."""

    job_id: JobId
    lines: tuple[Line, ...]

    def __str__(self) -> str:
        return "\n".join(str(line) for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleExplanation:
    """How a schedule stands, or what became of it at some time, and why."""

    schedule: str
    tz: str
    """The zone that its times are told in, and that a time without a zone was taken for."""
    lines: tuple[Line, ...]

    def __str__(self) -> str:
        return "\n".join(str(line) for line in self.lines)


async def explain_job(store: Store, job_id: JobId) -> Explanation:
    """Gather what the store knows about a job and tell it; raises `JobNotFound`."""
    facts = await _job_facts(store, await find_job(store, job_id), await store.workers())
    return Explanation(job_id=job_id, lines=_lines(explain(facts), "UTC"))


async def explain_occurrence(store: Store, name: str, at: datetime | None) -> ScheduleExplanation:
    """Gather what the store knows about a schedule and tell it; raises `ScheduleNotFound`."""
    facts = await _schedule_facts(store, name)
    if facts.trigger is not None:
        facts = replace(facts, tz=facts.trigger.tz)
    if at is None:
        facts = replace(facts, before=await store.past_occurrences(name, until=LATEST, limit=_BEFORE))
    else:
        facts = await _about(store, facts, ask(at, facts.tz))
    return ScheduleExplanation(schedule=name, tz=facts.tz, lines=_lines(explain_schedule(facts), facts.tz))


async def _schedule_facts(store: Store, name: str) -> ScheduleFacts:
    schedule = next(iter(await store.get_schedules([name])), None)
    entries = await store.entries(name, limit=_MOST_ENTRIES)
    oldest = next(iter(await store.occurrences(name, since=0, until=0, limit=1)), None)
    if schedule is None and not entries and oldest is None:
        schedule = await find_schedule(store, name)
    problem = None if schedule is None else oddity(schedule)
    schedule = None if schedule is None else mended(schedule)
    outlook = await store.outlook("" if schedule is None else schedule.queue)
    return ScheduleFacts(
        now=outlook.now,
        queue_paused_at=outlook.paused_at,
        queue_paused_reason=outlook.paused_reason,
        name=name,
        schedule=schedule,
        problem=None if problem is None else unreadable(problem),
        entries=entries,
        oldest=oldest,
        workers=await store.workers(),
    )


async def _about(store: Store, facts: ScheduleFacts, question: Question) -> ScheduleFacts:
    """Add the records of the time that is asked about, and what is known of their jobs."""
    records: dict[JobId, StoredJob] = {}
    for window in question.windows:
        # A record that stands for many is found at the last of them, perhaps behind jobs that were made later.
        found = await store.occurrences(facts.name, since=window.since, until=LATEST, limit=_MOST_RECORDS)
        records |= {record.id: record for record in found}
    made = [
        record
        for record in records.values()
        if was_made(record) and any(window.has(record.occurrence) for window in question.windows)
    ]
    until = question.windows[0].since - 1
    return replace(
        facts,
        question=question,
        records=list(records.values()),
        before=await store.past_occurrences(facts.name, until=until, limit=_BEFORE, made=True),
        jobs={
            record.id: replace(await _job_facts(store, record, facts.workers), tz=facts.tz)
            for record in made[:MOST_TOLD]
        },
    )


async def _job_facts(store: Store, job: StoredJob, workers: Sequence[StoredWorker]) -> Facts:
    outlook = await store.outlook(job.queue, gate=job.gate)
    return Facts(
        now=outlook.now,
        job=job,
        attempts=await store.attempts(job.id),
        workers=workers,
        queue_paused_at=outlook.paused_at,
        queue_paused_reason=outlook.paused_reason,
        limits=outlook.limits,
    )


def _lines(sentences: Iterable[Sentence], tz: str) -> tuple[Line, ...]:
    place = ZoneInfo(tz)
    return tuple(
        Line(at=None if at is None else to_datetime(at).astimezone(place), text=text)
        for at, text in sentences
    )
