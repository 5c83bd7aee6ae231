"""The schedules of a store as simple as can be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from duetime.model.job import JobId, NewJob
from duetime.model.schedule.occurrences import SpanCut
from duetime.model.schedule.record import Firing, ScheduleUpdate, StoredSchedule
from duetime.model.states import State
from duetime.model.stored.audit import ITSELF
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import Instant, Micros
from duetime.stores.base import DueSchedules
from duetime.testing.model import Job, JobModel


@dataclass(slots=True)
class ModelStore(JobModel):
    """All verbs of a store, without a database."""

    schedules: dict[str, StoredSchedule] = field(default_factory=dict[str, StoredSchedule])
    noted: set[str] = field(default_factory=set[str])

    def write_schedule(self, change: ScheduleUpdate) -> bool:
        """Add or change a schedule that is as it was read; tell whether it was, now or before."""
        old, read, new = self.schedules.get(change.after.name), change.before, change.after
        if (old is None) is not (read is None) or (
            old and read and (old.rev, old.fired_through) != (read.rev, read.fired_through)
        ):
            return change.entry is not None and change.entry.id in self.noted
        self.schedules[new.name] = replace(new, rev=1 if old is None else old.rev + 1)
        if change.withdraw is not None:
            self._withdraw(change, change.withdraw)
        self.enqueue(change.jobs)
        if change.entry is not None:
            self.noted.add(change.entry.id)
        return True

    def due(self, *, ahead: Micros) -> DueSchedules:
        """Tell which schedules are to fire or to go on, and when to look again."""
        now = self.clock.now()
        active = [schedule for schedule in self.schedules.values() if schedule.parked_at is None]
        coming = [s for s in active if s.paused_at is None and s.next_at is not None]
        waiting = [s for s in active if s.paused_at is not None and s.paused_until is not None]
        due = [s for s in coming if (s.next_at or 0) <= now + ahead]
        going_on = [s for s in waiting if (s.paused_until or 0) <= now]
        later = (s.next_at for s in coming if s not in due)
        resumes = (s.paused_until for s in waiting if s not in going_on)
        return DueSchedules(
            now,
            [*going_on, *due],
            min((at for at in later if at is not None), default=None),
            min((at for at in resumes if at is not None), default=None),
        )

    def fire(self, firings: Iterable[Firing]) -> frozenset[str]:
        """Apply what holds."""
        return frozenset(plan.name for plan in list(firings) if self._fire(plan))

    def delete_schedule(self, name: str) -> None:
        """Forget a schedule."""
        old = self.schedules.pop(name)
        self._withdraw(ScheduleUpdate(before=old, after=old), "schedule deleted")

    def backfill(self, jobs: Iterable[NewJob], cuts: Iterable[SpanCut]) -> list[JobId]:
        """Make jobs for occurrences that have none, in place of records that they did not run."""
        new = list(jobs)
        for cut in cuts:
            left = cut.left or cut.was
            place = {"span_first": left.first, "span_count": left.count}
            self.jobs[cut.id].change(occurrence=cut.left and left.last, **place)
            self.enqueue(cut.others)
        stored = self.enqueue(new)
        return [job.id for job, job_id in zip(new, stored, strict=True) if job.id == job_id]

    def live(self, schedule: str) -> int:
        """How many jobs of a schedule have not ended."""
        return sum(not record.state.terminal for record in self._records(schedule))

    def streak(self, schedule: str) -> int:
        """How many of its occurrences have failed since the last success, if that is counted."""
        asked = self.schedules[schedule]
        if asked.pause_after is None:
            return 0
        counted = [r for r in self._records(schedule) if (r.occurrence or -1) >= asked.streak_from]
        good = max((r.occurrence or 0 for r in counted if r.state is State.SUCCEEDED), default=-1)
        return sum(r.state is State.FAILED and (r.occurrence or 0) > good for r in counted)

    def runs(self, schedule: str, *, most: int) -> tuple[JobId | None, int, int, frozenset[State]]:
        """Which of its jobs has run last, and how many ended well and badly, counted up to a bound."""
        records = self._records(schedule)
        ended = [r for r in records if r.state.terminal and r.state is not State.SKIPPED]
        ran = [r for r in ended if r.state is not State.CANCELLED or r.started_at is not None]
        rank = {r.id: (r.created_at if r.occurrence is None else r.occurrence, r.id) for r in ran}
        good, bad = (sum(r.state is state for r in records) for state in (State.SUCCEEDED, State.FAILED))
        more = (state for state, count in ((State.SUCCEEDED, good), (State.FAILED, bad)) if count > most)
        last = max(rank, key=lambda job_id: rank[job_id], default=None)
        return last, min(good, most), min(bad, most), frozenset(more)

    def _records(self, schedule: str) -> list[StoredJob]:
        return [job.record for job in self.jobs.values() if job.record.schedule == schedule]

    def _fire(self, plan: Firing) -> bool:
        old, now = self.schedules.get(plan.name), self.clock.now()
        if old is None or (old.rev, old.fired_through) != (plan.rev, plan.expected):
            return False
        over = old.paused_until is not None and old.paused_until <= now
        if old.parked_at is not None or (old.paused_at is not None and not over):
            return False
        made, pauses = old.made + plan.made, plan.pause is not None
        after = replace(old, fired_through=plan.fired_through, next_at=plan.next_at, made=made)
        if pauses or plan.resumes:
            after = replace(
                after,
                paused_at=now if pauses else None,
                paused_reason=plan.pause,
                paused_by=ITSELF if pauses else None,
                paused_until=None,
                streak_from=now if plan.resumes else old.streak_from,
                rev=old.rev + 1,
            )
        self.schedules[plan.name] = after
        if plan.cancels:
            live = [record for record in self._records(plan.name) if not record.state.terminal]
            fired = [r.id for r in live if r.occurrence is not None and r.span_first is None]
            self.cancel(fired, reason="superseded by the next occurrence")
        self.enqueue(plan.jobs)
        return True

    def _withdraw(self, change: ScheduleUpdate, reason: str) -> None:
        """Take back what is planted; the schedule stands where it stood before."""
        now, name = self.clock.now(), change.after.name
        planted = [
            job
            for job in self.jobs.values()
            if job.record.schedule == name
            and change.only in {None, job.record.occurrence}
            and is_planted(job.record, now, drawn=change.drawn)
        ]
        held = [j.record for j in planted if j.record.state is State.RUNNING and j.record.started_at is None]
        if change.held:
            self.cancel([record.id for record in held], reason=reason)
        free = [job for job in planted if job.record.state is State.PENDING]
        for job in free:
            job.change(state=State.CANCELLED, finished_at=now, reason=reason)
        to_come = [job for job in free if change.only is not None or (job.record.occurrence or 0) > now]
        taken = [give_up(job) for job in to_come]
        old = self.schedules.get(name)
        if old is None:
            return
        old = replace(old, made=max(0, old.made - len(taken)))
        if taken and change.again:
            next_at = old.next_at if old.parked_at is not None else min(taken)
            old = replace(old, fired_through=min(taken) - 1, next_at=next_at)
        self.schedules[name] = old


def is_planted(record: StoredJob, now: Instant, *, drawn: bool) -> bool:
    """Whether a job has not begun, and is still to come or, if those are asked for, waits for its drawn time."""
    if record.occurrence is None or record.state.terminal:
        return False
    fresh = record.fence == (0 if record.state is State.PENDING else 1)
    return record.occurrence > now or (drawn and fresh and record.due_at > now)


def give_up(job: Job) -> Instant:
    """Take its occurrence from a job, and return it."""
    occurrence = job.record.occurrence
    assert occurrence is not None
    job.change(span_first=occurrence, occurrence=None)
    return occurrence
