"""Lives in which schedules plant jobs, are edited, paused and deleted, and fire from stale plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from duetime.model import firing as schedules
from duetime.model.audit import AuditEntry
from duetime.model.declaring import declaration, declare
from duetime.model.ids import new_job_id
from duetime.model.instants import SECOND
from duetime.model.schedule import Change, Firing, StoredSchedule
from duetime.model.triggers import Every
from duetime.testing.agreement import QUEUES, TASKS
from duetime.testing.machine import AHEAD, StoreMachine, World, pick, some

NAMES = ("s1", "s2")


class ScheduleMachine(StoreMachine):
    """All that can happen to schedules while their jobs run."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.plans: list[Firing] = []
        self.changes: list[Change] = []

    @rule(
        name=st.sampled_from(NAMES),
        every=st.sampled_from([SECOND, 7 * SECOND]),
        payload=st.sampled_from(["{}", "[]"]),
        overlap=st.sampled_from(["skip", "allow"]),
    )
    def put_schedule(self, name: str, every: int, payload: str, overlap: Any) -> None:
        """Somebody declares a schedule, new, changed or as it was."""
        now = self.clock.now()
        trigger = Every(interval=every, start=now + every // 2)
        new = StoredSchedule(
            name=name,
            task=TASKS[0],
            payload=payload,
            trigger=f"{trigger.interval} {trigger.start}",
            declared="",
            queue=QUEUES[0],
            overlap=overlap,
            misfire_window=10 * SECOND,
            fired_through=now,
            next_at=trigger.after(now),
        )
        new = replace(new, declared=declaration(new, trigger=f"every {every}"))
        change = declare(self.read(name), new, who="test", now=now)
        if change is not None:
            self.write(change)

    @precondition(lambda self: self.changes)
    @rule(which=some)
    def write_again(self, which: int) -> None:
        """Another process comes with a change that it decided long ago."""
        self.write(pick(self.changes, which))

    @precondition(lambda self: self.model.schedules)
    @rule(ahead=st.sampled_from([0, AHEAD]))
    def fire(self, ahead: int) -> None:
        """A worker looks for due schedules and fires them."""
        due = self.run(self.store.due_schedules(ahead=ahead, limit=10))
        plans = [
            schedules.fire(record, read_trigger(record), now=due.now, ahead=ahead) for record in due.schedules
        ]
        self.apply([plan for plan in plans if plan is not None])

    @precondition(lambda self: self.plans)
    @rule(which=some)
    def fire_again(self, which: int) -> None:
        """Another process comes with a plan that it made long ago."""
        plan = pick(self.plans, which)
        self.apply([replace(plan, jobs=tuple(replace(new, id=new_job_id()) for new in plan.jobs))])

    @precondition(lambda self: self.model.schedules)
    @rule(which=some, how=st.sampled_from(["pause", "resume", "delete"]))
    def change_schedule(self, which: int, how: str) -> None:
        """Somebody pauses, resumes or deletes a schedule."""
        name, now = pick(self.model.schedules, which), self.clock.now()
        if how == "delete":
            entry = AuditEntry(verb="delete", target=name, who="test")
            assert self.run(self.store.delete_schedule(name, entry))
            self.model.delete_schedule(name)
            return
        before = self.read(name)
        assert before is not None
        if how == "pause":
            self.write(
                Change(before=before, after=replace(before, paused_at=now), withdraw="schedule paused")
            )
        else:
            self.write(Change(before=before, after=replace(before, paused_at=None, fired_through=now)))

    def read(self, name: str) -> StoredSchedule | None:
        """Read a schedule as a client does."""
        return next(iter(self.run(self.store.get_schedules([name]))), None)

    def write(self, change: Change) -> None:
        """Write on both sides."""
        expected = self.model.write_schedule(change)
        assert self.run(self.store.write_schedules([change])) == ({change.after.name} if expected else set())
        self.changes.append(change)

    def apply(self, plans: list[Firing]) -> None:
        """Fire on both sides."""
        expected = self.model.fire(plans)
        assert self.run(self.store.fire(plans)) == expected
        self.plans += plans


def read_trigger(record: StoredSchedule) -> Every:
    """The trigger of a schedule that the machine declared."""
    interval, start = record.trigger.split()
    return Every(interval=int(interval), start=int(start))
