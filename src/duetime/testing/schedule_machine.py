"""Lives in which schedules plant jobs, are edited, paused, backfilled and deleted, and fire from stale plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from duetime.model.ids import new_job_id
from duetime.model.job import NewJob
from duetime.model.schedule.actions import declaration, declare
from duetime.model.schedule.firing import fire
from duetime.model.schedule.occurrences import span_cuts
from duetime.model.schedule.record import Firing, ScheduleUpdate, StoredSchedule
from duetime.model.states import State
from duetime.model.stored.audit import AuditEntry
from duetime.model.time import SECOND, Instant
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.every import Every
from duetime.model.triggers.specs import trigger_from_text, trigger_to_text
from duetime.testing.agreement import QUEUES, TASKS
from duetime.testing.machine import AHEAD, StoreMachine, World, pick, some

NAMES = ("s1", "s2")
POLICIES: list[dict[str, Any]] = [
    {"overlap": "skip"},
    {"overlap": "allow"},
    {"overlap": "allow", "misfire": "all", "misfire_limit": 3},
]


class ScheduleMachine(StoreMachine):
    """All that can happen to schedules while their jobs run."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.plans: list[Firing] = []
        self.changes: list[ScheduleUpdate] = []

    @rule(
        name=st.sampled_from(NAMES),
        every=st.sampled_from([SECOND, 7 * SECOND]),
        payload=st.sampled_from(["{}", "[]"]),
        policy=st.sampled_from(POLICIES),
        pause_after=st.sampled_from([None, 2]),
    )
    def put_schedule(self, name: str, every: int, policy: dict[str, Any], **options: Any) -> None:
        """Somebody declares a schedule, new, changed or as it was."""
        now = self.clock.now()
        trigger = Every(interval=every, start=now + every // 2)
        new = StoredSchedule(
            name=name,
            task=TASKS[0],
            trigger=trigger_to_text(trigger),
            declared="",
            queue=QUEUES[0],
            misfire_window=10 * SECOND,
            fired_through=now,
            next_at=trigger.after(now),
            **policy,
            **options,
        )
        new = replace(new, declared=declaration(new, trigger=f"every {every}"))
        change = declare(self.read(name), new, who="test", now=now)
        if change is not None:
            self.write(change)

    @precondition(lambda self: self.changes)
    @rule(which=some)
    def write_again(self, which: int) -> None:
        """Somebody comes with a change of long ago, decided by another process or written without an answer."""
        self.write(pick(self.changes, which))

    @precondition(lambda self: self.model.schedules)
    @rule(
        ahead=st.sampled_from([0, AHEAD]),
        pause=st.sampled_from([None, None, "failures"]),
        cancels=st.sampled_from([False, False, True]),
    )
    def fire(self, ahead: int, pause: str | None, cancels: bool) -> None:  # noqa: FBT001 - drawn by name
        """A worker looks for due schedules and fires them, or lets them go on."""
        due = self.run(self.store.due_schedules(ahead=ahead, limit=10))
        expected = self.model.due(ahead=ahead)
        assert {record.name for record in due.schedules} == {record.name for record in expected.schedules}
        assert due._replace(schedules=[]) == expected._replace(schedules=[])
        plans = [fire(record, read_trigger(record), now=due.now, ahead=ahead) for record in due.schedules]
        self.apply([replace(plan, pause=pause, cancels=cancels) for plan in plans if plan is not None])

    @precondition(lambda self: self.plans)
    @rule(which=some)
    def fire_again(self, which: int) -> None:
        """Another process comes with a plan that it made long ago."""
        plan = pick(self.plans, which)
        self.apply([replace(plan, jobs=tuple(new._replace(id=new_job_id()) for new in plan.jobs))])

    @precondition(lambda self: self.model.schedules)
    @rule(which=some, how=st.sampled_from(["pause", "pause until", "park", "resume", "skip", "delete"]))
    def change_schedule(self, which: int, how: str) -> None:
        """Somebody pauses, parks, resumes or deletes a schedule, or skips its next occurrence."""
        name, now = pick(self.model.schedules, which), self.clock.now()
        entry = AuditEntry(verb=how, target=name, who="test")
        before = self.read(name)
        assert before is not None
        match how:
            case "delete":
                assert self.run(self.store.delete_schedule(name, entry))
                assert self.run(self.store.delete_schedule(name, entry))
                self.model.delete_schedule(name)
            case "resume":
                none: Any = dict.fromkeys(("paused_at", "paused_until", "parked_at"))
                after = replace(before, fired_through=now, next_at=next_of(before, now), **none)
                self.write(ScheduleUpdate(before=before, after=after, entry=entry))
            case "skip":
                occurrence = next_of(before, now)
                record = job_of(before, occurrence, state=State.SKIPPED, reason=how)
                after = replace(before, fired_through=occurrence, next_at=next_of(before, occurrence))
                self.write(
                    ScheduleUpdate(
                        before=before, after=after, entry=entry, jobs=(record,), withdraw=how, again=False
                    )
                )
            case _:
                until = now + 2 * SECOND if how == "pause until" else None
                away: Any = {"parked_at": now} if how == "park" else {"paused_at": now, "paused_until": until}
                self.write(
                    ScheduleUpdate(before=before, after=replace(before, **away), entry=entry, withdraw=how)
                )

    @precondition(lambda self: self.model.schedules)
    @rule(which=some, back=st.integers(1, 6), count=st.integers(1, 4))
    def backfill(self, which: int, back: int, count: int) -> None:
        """Somebody makes jobs for occurrences of the past, and again after a lost answer."""
        schedule = self.read(pick(self.model.schedules, which))
        assert schedule is not None
        jobs = list[NewJob]()
        occurrence = next_of(schedule, self.clock.now() - back * SECOND)
        while occurrence <= self.clock.now() and len(jobs) < count:
            jobs.append(job_of(schedule, occurrence))
            occurrence = next_of(schedule, occurrence)
        entry = AuditEntry(verb="backfill", target=schedule.name, who="test")
        moments = [job.occurrence or 0 for job in jobs]
        reading = self.store.occurrences(schedule.name, since=0, until=max(moments, default=0), limit=999)
        cut = span_cuts(self.run(reading), moments, schedule, trigger_from_text(schedule.trigger))
        expected = self.model.backfill(jobs, cut)
        for _ in range(2):
            assert self.run(self.store.backfill(jobs, entry, cuts=cut)) == expected

    def read(self, name: str) -> StoredSchedule | None:
        """Read a schedule as a client does."""
        return next(iter(self.run(self.store.get_schedules([name]))), None)

    def write(self, change: ScheduleUpdate) -> None:
        """Write on both sides."""
        expected = self.model.write_schedule(change)
        assert self.run(self.store.write_schedules([change])) == ({change.after.name} if expected else set())
        self.changes.append(change)

    def apply(self, plans: list[Firing]) -> None:
        """Fire on both sides."""
        expected = self.model.fire(plans)
        assert self.run(self.store.fire(plans)) == expected
        self.plans += plans


def read_trigger(record: StoredSchedule) -> Trigger:
    """The trigger of a schedule."""
    return trigger_from_text(record.trigger)


def next_of(record: StoredSchedule, moment: Instant) -> Instant:
    """The first occurrence of a schedule after a moment."""
    occurrence = read_trigger(record).after(moment)
    assert occurrence is not None
    return occurrence


def job_of(schedule: StoredSchedule, occurrence: Instant, **changes: Any) -> NewJob:
    """The job of an occurrence."""
    new = NewJob(id=new_job_id(), task=schedule.task, payload=schedule.payload, queue=schedule.queue)
    return new._replace(schedule=schedule.name, occurrence=occurrence, due_at=occurrence, **changes)
