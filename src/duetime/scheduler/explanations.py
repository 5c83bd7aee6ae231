"""Why a job, a schedule or a worker stands as it does, and what is wrong with schedules as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from duetime.model.explain.facts import (
    JobFacts,
    ScheduleFacts,
    ScheduleQuestion,
    Sentence,
    WorkerFacts,
    ask_about,
    length,
)
from duetime.model.explain.job import job_explanation
from duetime.model.explain.schedule import MOST_TOLD, schedule_explanation, was_made
from duetime.model.explain.worker import worker_explanation
from duetime.model.job import JobId
from duetime.model.queues import MOST_COUNTED, UnservedJobs, unserved
from duetime.model.schedule.record import StoredSchedule
from duetime.model.stored.jobs import (
    LiveWorkers,
    StoredJob,
    StoredWorker,
    row_problem,
    unreadable_row,
    with_blanks,
)
from duetime.model.text import short_list
from duetime.model.time import LATEST, MINUTE, Instant, to_datetime
from duetime.model.triggers.specs import UnreadableTrigger, schedule_trigger
from duetime.model.worker import WorkerId
from duetime.scheduler.lookup import find_job, find_schedule, find_worker
from duetime.stores.base import DoctorCheck, Store

_MAX_RECORDS = 200
_MAX_ENTRIES = 500
_MOST_COMMANDS = 10
"""How many of the last commands to a worker are told."""
_MAX_JOBS_BEFORE = 50
"""How many jobs before an occurrence are looked at for the one that was in its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationLine:
    """One sentence, and when it happened; `None` for what is so now."""

    at: datetime | None
    text: str

    def __str__(self) -> str:
        when = "now" if self.at is None else self.at.strftime("%Y-%m-%d %H:%M:%S")
        return f"{when:19}  {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Explanation:
    lines: tuple[ExplanationLine, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(_Explanation):
    """What happened to a job, and what it waits for."""

    job_id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleExplanation(_Explanation):
    """How a schedule stands, or what became of it at some time, and why."""

    schedule: str
    tz: str
    """The zone that its times are told in, and that a time without a zone was taken for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerExplanation(_Explanation):
    """What a worker was told and has come to, and what keeps it from taking jobs."""

    worker_id: WorkerId


async def explain_worker(store: Store, worker_id: WorkerId) -> WorkerExplanation:
    """Gather what the store knows about a worker and tell it; raises `WorkerNotFound`."""
    workers = await store.workers()
    facts = WorkerFacts(
        now=await store.now(),
        workers=workers,
        subject=find_worker(workers, worker_id),
        commands=await store.commands_of(worker_id, limit=_MOST_COMMANDS),
        queues=await store.queues(),
    )
    return WorkerExplanation(worker_id=worker_id, lines=_lines(worker_explanation(facts), "UTC"))


async def explain_job(store: Store, job_id: JobId) -> Explanation:
    """Gather what the store knows about a job and tell it; raises `JobNotFound`."""
    facts = await _job_facts(store, await find_job(store, job_id), await store.workers())
    return Explanation(job_id=job_id, lines=_lines(job_explanation(facts), "UTC"))


async def explain_schedule_at(store: Store, name: str, at: datetime | None) -> ScheduleExplanation:
    """Gather what the store knows about a schedule and tell it; raises `ScheduleNotFound`."""
    facts = await _schedule_facts(store, name)
    if facts.trigger is not None:
        facts = replace(facts, tz=facts.trigger.tz)
    if at is None:
        before = await store.past_occurrences(name, until=LATEST, limit=_MAX_JOBS_BEFORE)
        facts = replace(facts, before=before)
    else:
        facts = await _with_question(store, facts, ask_about(at, facts.tz))
    lines = _lines(schedule_explanation(facts), facts.tz)
    return ScheduleExplanation(schedule=name, tz=facts.tz, lines=lines)


async def _schedule_facts(store: Store, name: str) -> ScheduleFacts:
    schedule = next(iter(await store.get_schedules([name])), None)
    entries = await store.entries(name, limit=_MAX_ENTRIES)
    oldest = next(iter(await store.occurrences(name, since=0, until=0, limit=1)), None)
    if schedule is None and not entries and oldest is None:
        schedule = await find_schedule(store, name)
    problem = None if schedule is None else row_problem(schedule)
    schedule = None if schedule is None else with_blanks(schedule)
    outlook = await store.outlook("" if schedule is None else schedule.queue)
    return ScheduleFacts(
        now=outlook.now,
        queue_paused_at=outlook.paused_at,
        queue_paused_reason=outlook.paused_reason,
        name=name,
        schedule=schedule,
        problem=None if problem is None else unreadable_row(problem),
        entries=entries,
        oldest=oldest,
        workers=await store.workers(),
    )


async def _with_question(store: Store, facts: ScheduleFacts, question: ScheduleQuestion) -> ScheduleFacts:
    """Add the records of the time that is asked about, and what is known of their jobs."""
    records: dict[JobId, StoredJob] = {}
    for window in question.windows:
        # A record that stands for many is found at the last of them, perhaps behind jobs that were made later.
        found = await store.occurrences(facts.name, since=window.since, until=LATEST, limit=_MAX_RECORDS)
        records |= {record.id: record for record in found}
    inside = [one for one in records.values() if any(w.has(one.occurrence) for w in question.windows)]
    made = [record for record in inside if was_made(record)][:MOST_TOLD]
    jobs = {one.id: replace(await _job_facts(store, one, facts.workers), tz=facts.tz) for one in made}
    until = question.windows[0].since - 1
    before = await store.past_occurrences(facts.name, until=until, limit=_MAX_JOBS_BEFORE, made=True)
    return replace(facts, question=question, records=list(records.values()), before=before, jobs=jobs)


async def _job_facts(store: Store, job: StoredJob, workers: Sequence[StoredWorker]) -> JobFacts:
    outlook = await store.outlook(job.queue, gate=job.gate)
    return JobFacts(
        now=outlook.now,
        job=job,
        attempts=await store.attempts(job.id),
        workers=workers,
        queue_paused_at=outlook.paused_at,
        queue_paused_reason=outlook.paused_reason,
        limits=outlook.limits,
    )


def _lines(sentences: Iterable[Sentence], tz: str) -> tuple[ExplanationLine, ...]:
    place = ZoneInfo(tz)
    return tuple(
        ExplanationLine(at=None if at is None else to_datetime(at).astimezone(place), text=text)
        for at, text in sentences
    )


_OVERDUE_AFTER = MINUTE
"""How long after its time a schedule is fired at the latest if a worker fires schedules."""
_MAX_NAMED = 3

_START_COMMAND = "duetime scheduler MODULE:SCHEDULER, or a worker without --no-schedules"


async def check_schedules(store: Store) -> DoctorCheck:
    """Tell whether workers fire the schedules, in time, and know their tasks."""
    schedules, workers, now = await store.schedules(), await store.workers(), await store.now()
    return check_plans(schedules, LiveWorkers.of(workers), now=now)


def check_plans(schedules: list[StoredSchedule], fleet: LiveWorkers, *, now: Instant) -> DoctorCheck:
    """Return the first thing that is wrong, in the order in which it is to be mended."""
    active = [one for one in schedules if _is_active(one)]
    if not active:
        return DoctorCheck(name="schedules", ok=True, detail="no active schedules")
    what = f"{len(active):,} active"
    if (found := _problem(active, fleet, now)) is None:
        return DoctorCheck(name="schedules", ok=True, detail=f"{what}, none overdue")
    detail, fix = found
    return DoctorCheck(name="schedules", ok=False, detail=f"{what}, {detail}", fix=fix)


def _problem(active: list[StoredSchedule], fleet: LiveWorkers, now: Instant) -> tuple[str, str] | None:
    """Say what is wrong, and what to do about it."""
    triggers = {one.name: schedule_trigger(one) for one in active}
    if unreadable := {n: one for n, one in triggers.items() if isinstance(one, UnreadableTrigger)}:
        first, problem = next(iter(unreadable.items()))
        what = f"{len(unreadable):,} of them cannot be read and wait: {short_list([*unreadable], most=_MAX_NAMED)}"
        return what, f"put or delete them; {first} has {problem.describe()}"
    if not fleet.fires:
        return "and no worker fires them", f"start {_START_COMMAND}"
    if not fleet.queues:
        return "and no worker runs their jobs", "start duetime worker MODULE:SCHEDULER"
    if unknown := [schedule.task for schedule in active if not fleet.knows(schedule.task)]:
        tasks = short_list(sorted(set(unknown)), most=_MAX_NAMED)
        return (
            f"{len(unknown):,} with tasks that no living worker knows: {tasks}",
            "start a worker with the code that has them; delete only schedules that are no longer wanted",
        )
    if overdue := [one.name for one in overdue_schedules(active, now=now)]:
        late = f"{len(overdue):,} overdue for up to {length(now - min(one.next_at or now for one in active))}"
        fix = f"see the log of the workers that fire schedules, or: duetime explain {overdue[0]}"
        return f"{late}: {short_list(overdue, most=_MAX_NAMED)}", fix
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverdueSchedule:
    """A schedule whose time has come and that no one has fired."""

    name: str
    queue: str
    next_at: datetime
    """When it should have been fired."""
    late: timedelta


def overdue_schedules(schedules: Iterable[StoredSchedule], *, now: Instant) -> list[OverdueSchedule]:
    """Return those that are overdue, the latest first."""
    waiting = [(one.next_at, one) for one in schedules if one.next_at is not None and _is_active(one)]
    return [
        OverdueSchedule(
            name=one.name, queue=one.queue, next_at=to_datetime(at), late=timedelta(microseconds=now - at)
        )
        for at, one in sorted(waiting, key=lambda pair: (pair[0], pair[1].name))
        if at < now - _OVERDUE_AFTER
    ]


def _is_active(schedule: StoredSchedule) -> bool:
    return schedule.next_at is not None and schedule.paused_at is None and schedule.parked_at is None


async def unserved_jobs(store: Store) -> list[UnservedJobs]:
    """Return due jobs that no worker will take; a bounded number of them is looked at."""
    due = await store.due_jobs(most=MOST_COUNTED)
    return unserved(due, LiveWorkers.of(await store.workers()) if due else LiveWorkers())


async def check_queues(store: Store) -> DoctorCheck:
    """Tell whether there are workers for the jobs that are due."""
    found = await unserved_jobs(store)
    return DoctorCheck.of(
        "queues",
        not found,
        "; ".join(map(str, found)) or "workers serve all that is due",
        "start duetime worker MODULE:SCHEDULER with the code that has the tasks, and --queue for each queue",
    )
