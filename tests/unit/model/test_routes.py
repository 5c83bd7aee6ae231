from __future__ import annotations

from typing import Any

import pytest

from duetime.model.job import JobTerms, Key, NewJob
from duetime.model.routes import DEFAULT_ROUTES, Route, Tier, longest_delay, tier_of, usable_routes
from duetime.model.states import State
from duetime.model.time import DAY, HOUR, MINUTE, SECOND

NOW = 1_000 * DAY
MEMORY, NEAR, FAR = Tier
ALL = usable_routes(DEFAULT_ROUTES, tiers=[*Tier], persistent=True)


def job(**changes: Any) -> NewJob:
    return NewJob(id="1", task="greet", payload="{}")._replace(**changes)


def place(*jobs: NewJob, tiers: frozenset[Tier] = frozenset(Tier), persistent: bool = True) -> Tier:
    """Where jobs go that are stored together."""
    routes = usable_routes(DEFAULT_ROUTES, tiers=tiers, persistent=persistent)
    return tier_of(jobs, routes, now=NOW, far_queues={"billing"})


@pytest.mark.parametrize(
    ("delay", "tier"),
    [
        (0, MEMORY),
        (5 * SECOND, MEMORY),
        (5 * SECOND + 1, NEAR),
        (5 * MINUTE, NEAR),
        (HOUR, NEAR),
        (HOUR + 1, FAR),
        (DAY, FAR),
    ],
)
def test_a_job_goes_to_the_first_store_whose_longest_delay_it_keeps(delay: int, tier: Tier) -> None:
    assert place(job(delay=delay)) is tier
    assert place(job(due_at=NOW + delay)) is tier


def test_what_is_overdue_is_due_soon() -> None:
    assert place(job(due_at=NOW - DAY)) is MEMORY


@pytest.mark.parametrize(("delay", "tier"), [(5 * MINUTE, NEAR), (5 * MINUTE + 1, FAR)])
def test_a_near_store_that_forgets_has_jobs_for_five_minutes_at_most(delay: int, tier: Tier) -> None:
    assert place(job(delay=delay), persistent=False) is tier


def test_without_memory_what_is_due_at_once_is_near() -> None:
    assert place(job(), tiers=frozenset({NEAR, FAR})) is NEAR


def test_without_another_near_store_what_is_not_due_in_seconds_is_far() -> None:
    assert place(job(delay=6 * SECOND), tiers=frozenset({MEMORY, FAR})) is FAR


@pytest.mark.parametrize(
    "special",
    [
        {"key": Key(value="k")},
        {"on_crash": "fail"},
        {"schedule": "nightly", "occurrence": NOW},
        {"state": State.SKIPPED},
        {"terms": JobTerms(gate="greet")},
        {"terms": JobTerms(callbacks="[]")},
        {"queue": "billing"},
    ],
    ids=str,
)
def test_what_one_store_alone_can_see_to_goes_far(special: dict[str, Any]) -> None:
    assert place(job(**special)) is FAR


@pytest.mark.parametrize(
    "plain",
    [
        {"parent": "0"},
        {"expires_at": NOW + DAY},
        {"terms": JobTerms(tags=("a",), expires=HOUR, result_ttl=0)},
        {"queue": "mail", "priority": 0, "retries": 3, "timeout": 1},
    ],
    ids=str,
)
def test_what_every_store_can_see_to_goes_by_its_delay(plain: dict[str, Any]) -> None:
    assert place(job(**plain)) is MEMORY


def test_jobs_that_are_stored_together_go_where_the_farthest_of_them_goes() -> None:
    assert place(job(), job(delay=MINUTE)) is NEAR
    assert place(job(), job(delay=MINUTE), job(delay=DAY)) is FAR


def test_the_longest_delay_of_a_store_is_that_of_its_last_route() -> None:
    assert [longest_delay(ALL, tier) for tier in Tier] == [5 * SECOND, HOUR, 0]
    assert longest_delay([Route(NEAR, 3), Route(NEAR, 2)], NEAR) == 3
