"""Where claims may begin."""

from __future__ import annotations

from dataclasses import replace

from duetime.model.job import Claim
from duetime.stores.base import Demand
from duetime.stores.sql.backlog import Backlogs

DEMAND = Demand(worker="w", claim_id="c", queues=(("default", 600),), limit=600, tasks=("work",))


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def claimed(count: int, *, due_at: int, queue: str = "default", priority: int = 5) -> list[Claim]:
    return [
        Claim(
            job_id=f"{due_at}.{n}",
            fence=1,
            claim_id="c",
            task="work",
            payload="{}",
            queue=queue,
            priority=priority,
            due_at=due_at + n,
            claimed_at=10**9,
            failures=0,
            crashes=0,
            blames=0,
            on_crash="retry",
            retries=None,
            timeout=None,
            schedule=None,
            occurrence=None,
            cancel_requested_at=None,
        )
        for n in range(count)
    ]


def after_a_long_backlog() -> tuple[Backlogs, Clock]:
    clock = Clock()
    backlogs = Backlogs(clock)
    for due_at in (1_000, 2_000):
        assert backlogs.floors(DEMAND) == []
        backlogs.note(DEMAND, claimed(600, due_at=due_at))
    assert backlogs.floors(DEMAND) == [], "the first claim behind it still looks everywhere"
    return backlogs, clock


def test_in_a_long_backlog_a_claim_begins_where_the_last_one_began() -> None:
    backlogs, _ = after_a_long_backlog()
    assert backlogs.floors(DEMAND) == [("default", 5, 2_000)]
    backlogs.note(DEMAND, claimed(300, due_at=7, priority=0) + claimed(300, due_at=3_000))
    assert sorted(backlogs.floors(DEMAND)) == [("default", 0, 7), ("default", 5, 3_000)]


def test_a_claim_looks_everywhere_once_in_a_while() -> None:
    backlogs, clock = after_a_long_backlog()
    clock.now += 0.9
    assert backlogs.floors(DEMAND)
    clock.now += 0.2
    assert backlogs.floors(DEMAND) == []
    assert backlogs.floors(DEMAND)


def test_a_claim_that_was_not_filled_makes_the_next_look_everywhere() -> None:
    backlogs, _ = after_a_long_backlog()
    backlogs.note(DEMAND, claimed(599, due_at=3_000))
    assert backlogs.floors(DEMAND) == []
    backlogs.note(DEMAND, claimed(600, due_at=3_000))
    assert backlogs.floors(DEMAND) == []


def test_claims_that_leave_other_jobs_behind_begin_elsewhere() -> None:
    backlogs, _ = after_a_long_backlog()
    for other in (
        replace(DEMAND, worker="v"),
        replace(DEMAND, tasks=("work", "rest")),
        replace(DEMAND, unstarted=True),
        replace(DEMAND, below_priority=5),
        replace(DEMAND, ahead=100),
    ):
        assert backlogs.floors(other) == []
    assert backlogs.floors(DEMAND)
