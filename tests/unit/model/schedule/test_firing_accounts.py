"""Lives of a schedule under every policy: each occurrence is accounted for once, within every bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given, strategies as st

from duetime.model.job import NewJob
from duetime.model.schedule import occurrences as passing
from duetime.model.schedule.firing import fire
from duetime.model.schedule.record import Firing, StoredSchedule
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.model.triggers.every import Every
from tests.unit.model.schedule.firing_kit import MINUTE, START, Counted, record

MINUTELY = Every(interval=MINUTE, start=START)
WALK = 20


class Step(NamedTuple):
    """Some time goes by; meanwhile jobs end, and the schedule may have been paused before."""

    wait: int
    ended: int
    failed: bool
    pause: int | None
    ahead: int


policies = st.fixed_dictionaries(
    {
        "overlap": st.sampled_from(["skip", "allow", "queue_one", "queue_all", "cancel_running"]),
        "overlap_limit": st.integers(1, 3),
        "misfire": st.sampled_from(["latest", "all", "skip"]),
        "misfire_window": st.sampled_from([0, 10 * SECOND, 5 * MINUTE, 10_000 * MINUTE]),
        "misfire_limit": st.integers(1, 6),
        "pause_after": st.sampled_from([None, None, 2]),
    }
)
steps = st.builds(
    Step,
    wait=st.sampled_from([0, SECOND, 30 * SECOND, MINUTE, 7 * MINUTE, 70 * MINUTE]),
    ended=st.integers(0, 3),
    failed=st.booleans(),
    pause=st.sampled_from([None, None, None, 3 * MINUTE + 1, 40 * MINUTE]),
    ahead=st.sampled_from([0, SECOND]),
)


class Life:
    """A schedule in memory, moved on as a store does it."""

    def __init__(self, policy: dict[str, Any], trigger: Counted) -> None:
        self.trigger = trigger
        self.now = START - 5 * SECOND
        self.schedule = record(fired_through=START - 1, next_at=START, **policy)
        self.records: list[NewJob] = []

    def go(self, step: Step) -> None:
        """Let time go by, and fire until nothing is left to do."""
        self.now += step.wait
        ended = min(step.ended, self.schedule.live)
        streak = self.schedule.streak + ended if step.failed else 0 if ended else self.schedule.streak
        self.schedule = replace(self.schedule, live=self.schedule.live - ended, streak=streak)
        if step.pause is not None and self.schedule.paused_at is None:
            until = self.now + step.pause
            self.schedule = replace(self.schedule, paused_at=self.now, paused_until=until)
        for _ in range(100):
            self.trigger.asked.clear()
            firing = fire(self.schedule, self.trigger, now=self.now, ahead=step.ahead)
            assert len(self.trigger.asked) < 2 * WALK + 300
            if firing is None:
                return
            self.apply(firing)
        pytest.fail("it never comes to an end")

    def apply(self, firing: Firing) -> None:
        """Do what a store does."""
        before = self.schedule
        assert (firing.rev, firing.expected) == (before.rev, before.fired_through)
        assert before.paused_at is None or (before.paused_until or 0) <= self.now
        live = (0 if firing.cancels else before.live) + firing.made
        after = replace(before, fired_through=firing.fired_through, next_at=firing.next_at, live=live)
        after = replace(after, made=before.made + firing.made)
        if firing.resumes:
            after = replace(after, paused_at=None, paused_until=None, streak=0)
        if firing.pause is not None:
            after = replace(after, paused_at=self.now, paused_until=self.now + 2 * MINUTE)
        self.check(before, after, firing)
        self.schedule = after
        self.records += firing.jobs

    def check(self, before: StoredSchedule, after: StoredSchedule, firing: Firing) -> None:
        """Compare with the bounds."""
        assert after.fired_through >= before.fired_through
        assert after.next_at is None or after.next_at > after.fired_through
        if not firing.made:
            return
        assert firing.made <= (before.misfire_limit if before.misfire == "all" else 1)
        bounds = {"queue_one": 2, "queue_all": 1 + (before.overlap_limit or 0), "cancel_running": 1}
        assert after.live <= bounds.get(before.overlap, after.live)
        if before.overlap == "skip":
            assert before.live == 0
        in_turn = {job.terms.gate is not None for job in firing.jobs if not job.state.terminal}
        must = before.overlap != "allow" and (before.overlap != "skip" or firing.made > 1)
        assert in_turn == {must}


@given(
    policy=policies,
    life=st.lists(steps, min_size=1, max_size=25),
    can_count=st.booleans(),
    times=st.sampled_from([None, 1, 7]),
)
def test_every_occurrence_is_accounted_for_once_whatever_the_policies_are(
    policy: dict[str, Any], life: list[Step], can_count: bool, times: int | None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passing, "MOST_WALKED", WALK)
        schedule = Life(policy, Counted(rule=MINUTELY, can_count=can_count, times=times))
        for step in life:
            schedule.go(step)
    accounted = [
        occurrence
        for job in schedule.records
        for occurrence in range(job.span_first or job.occurrence or 0, (job.occurrence or 0) + 1, MINUTE)
    ]
    assert all(
        ((job.occurrence or 0) - (job.span_first or job.occurrence or 0)) // MINUTE + 1 == job.span_count
        for job in schedule.records
    )
    last = schedule.records[-1].occurrence if schedule.records else None
    assert accounted == ([] if last is None else list(range(START, last + 1, MINUTE)))
    runs = [job for job in schedule.records if job.state is State.PENDING]
    assert len(runs) == schedule.schedule.made
    assert times is None or len(runs) <= times
    settled = schedule.schedule
    if settled.paused_at is None and settled.next_at is not None:
        assert settled.next_at > schedule.now
        assert last is None or settled.next_at == last + MINUTE
    if settled.next_at is None and settled.paused_at is None:
        assert times is not None
        assert settled.made == times
