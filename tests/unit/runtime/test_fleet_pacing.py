"""How long workers wait so that they do not all ask at once."""

from __future__ import annotations

import pytest

from duetime.runtime.pacing import FleetPacing, Interval


def crowd(workers: int) -> FleetPacing:
    found = FleetPacing()
    found.workers = workers
    return found


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_a_few_workers_never_wait(workers: int) -> None:
    assert {crowd(workers).wait() for _ in range(50)} == {0}


def test_the_first_of_many_asks_about_as_soon_as_the_first_of_some() -> None:
    def first(workers: int) -> float:
        some = crowd(workers)
        return sum(min(some.wait() for _ in range(workers)) for _ in range(50)) / 50

    assert first(1_000) < 4 * first(100)


def test_the_questions_of_many_are_spread_over_a_time_that_grows_with_their_number() -> None:
    waits = sorted(crowd(1_000).wait(spacing=0.01, at_most=10) for _ in range(1_000))
    assert waits[-1] > 8
    in_one_second = sum(wait < 1 for wait in waits)
    assert in_one_second < 200


def test_a_bound_is_kept() -> None:
    assert max(crowd(1_000).wait(at_most=0.25) for _ in range(100)) <= 0.25


@pytest.mark.parametrize("workers", [1, 10, 50])
def test_a_few_workers_look_as_often_as_one_would(workers: int) -> None:
    assert crowd(workers).share(Interval(10.0, spacing=0.2, longest=3_600.0)) == 10.0


@pytest.mark.parametrize("workers", [100, 1_000, 10_000])
def test_the_looks_of_many_workers_together_do_not_become_more(workers: int) -> None:
    assert workers / crowd(workers).share(Interval(10.0, spacing=0.2, longest=3_600.0)) == pytest.approx(5.0)


def test_no_worker_looks_more_seldom_than_the_bound() -> None:
    assert crowd(10_000).share(Interval(10.0, spacing=0.2, longest=60.0)) == 60.0
