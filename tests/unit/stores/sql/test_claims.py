"""Where claims may begin."""

from __future__ import annotations

import random
from dataclasses import replace

from duetime.model.job import Claim
from duetime.stores.base import ClaimRequest
from duetime.stores.sql.claims import Backlogs
from tests.unit.runtime.kit import claim

DEMAND = ClaimRequest(worker="w", claim_id="c", queues=(("default", 600),), limit=600, tasks=("work",))


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def claimed(count: int, *, due_at: int, queue: str = "default", priority: int = 5) -> list[Claim]:
    return [claim(f"{due_at}.{n}", due_at=due_at + n, queue=queue, priority=priority) for n in range(count)]


def after_a_long_backlog() -> tuple[Backlogs, Clock]:
    clock = Clock()
    backlogs = Backlogs(clock)
    for due_at in (1_000, 2_000):
        assert backlogs.floors(DEMAND) == []
        backlogs.note(DEMAND, claimed(600, due_at=due_at))
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
    backlogs.note(DEMAND, claimed(600, due_at=3_000))
    assert backlogs.floors(DEMAND) == []
    backlogs.note(DEMAND, claimed(600, due_at=3_000))
    assert backlogs.floors(DEMAND) == [("default", 5, 3_000)]


def test_a_claim_looks_everywhere_in_each_queue_when_it_comes_to_it() -> None:
    """Eight queues with a backlog, of which each claim takes from one: all are looked through about once a second."""
    clock = Clock()
    backlogs = Backlogs(clock)
    names, rng = [f"q{n}" for n in range(8)], random.Random(7)
    seen, longest, everywhere, claims = dict.fromkeys(names, clock.now), 0.0, 0, 4_000
    for _ in range(claims):
        order = rng.sample(names, len(names))
        demand = replace(DEMAND, queues=tuple((name, 50) for name in order), limit=50)
        floors = backlogs.floors(demand)
        if order[0] not in {queue for queue, _, _ in floors}:
            longest = max(longest, clock.now - seen[order[0]])
            seen[order[0]] = clock.now
            everywhere += 1
        backlogs.note(demand, claimed(50, due_at=1_000, queue=order[0]))
        clock.now += 0.005
    assert longest < 2.0
    assert everywhere < claims / 10, "most claims begin where an earlier one began"


def test_what_is_known_of_all_queues_is_forgotten_together() -> None:
    clock = Clock()
    backlogs = Backlogs(clock)
    demand = replace(DEMAND, queues=(("gone", 600), ("long", 600), ("later", 600)))
    for name in ("gone", "later", "long"):
        backlogs.note(demand, claimed(600, due_at=1_000, queue=name))
    clock.now += 1.1
    assert backlogs.floors(demand) == []
    backlogs.note(demand, claimed(600, due_at=2_000, queue="long"))
    assert backlogs.floors(demand) == [("long", 5, 2_000)]


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


def test_only_claims_that_met_a_backlog_are_remembered() -> None:
    backlogs = Backlogs(Clock())
    for n in range(100):
        backlogs.floors(replace(DEMAND, worker=f"w{n}"))
        backlogs.note(replace(DEMAND, worker=f"w{n}", ahead=100), [])
    assert backlogs._met == {}
