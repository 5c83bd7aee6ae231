from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from duetime.model.outcome import MAX_CRASHES, CrashSuspect, blamed_job, is_poison

SUSPICIOUS = 2
"""From so many crashes on, jobs run in a worker one at a time."""


def test_a_job_alone_in_its_worker_is_blamed() -> None:
    assert blamed_job([CrashSuspect("a", 0)]) == "a"


def test_nobody_is_blamed_when_nothing_was_started() -> None:
    assert blamed_job([]) is None


def test_nobody_is_blamed_among_several_that_never_saw_a_crash() -> None:
    assert blamed_job([CrashSuspect("a", 0), CrashSuspect("b", 0)]) is None


@pytest.mark.parametrize("others", [0, 1])
def test_the_one_that_saw_the_most_crashes_is_blamed_among_others(others: int) -> None:
    assert blamed_job([CrashSuspect("a", others), CrashSuspect("b", 2), CrashSuspect("c", others)]) == "b"


def test_nobody_is_blamed_when_several_saw_the_most_crashes() -> None:
    assert blamed_job([CrashSuspect("a", 2), CrashSuspect("b", 2), CrashSuspect("c", 1)]) is None


class Life:
    """What is counted of a job."""

    def __init__(self, crashes: int = 0) -> None:
        self.crashes = crashes
        self.blames = 0

    def crash(self, *, is_blamed: bool) -> bool:
        """Count a death around it, and tell whether it is given up."""
        self.crashes += 1
        self.blames += is_blamed
        return is_blamed and is_poison(crashes=self.crashes, blames=self.blames)


def deaths_of(jobs: dict[str, Life], draw: random.Random) -> tuple[int, set[str]]:
    """Let `poison` kill workers that run any of the others beside it; tell how many die, and who is given up."""
    ended = set[str]()
    for deaths in range(1, 100):
        beside = [name for name in jobs if name != "poison" and draw.random() < 0.7]
        if jobs["poison"].crashes >= SUSPICIOUS:
            beside = [name for name in beside if jobs[name].crashes < SUSPICIOUS]
        else:
            apart = [name for name in beside if jobs[name].crashes >= SUSPICIOUS]
            beside = [name for name in beside if name not in apart[1:]]
        started = ["poison", *beside]
        guilty = blamed_job(CrashSuspect(name, jobs[name].crashes) for name in started)
        ended |= {name for name in started if jobs[name].crash(is_blamed=name == guilty)}
        if "poison" in ended:
            return deaths, ended
        jobs = {name: life for name, life in jobs.items() if name not in ended}
    raise AssertionError("it is never given up")


@pytest.mark.covers("poison-job")
@given(companions=st.integers(0, 6), draw=st.randoms(use_true_random=False))
def test_poison_ends_after_at_most_four_deaths_and_nothing_else_does(
    companions: int, draw: random.Random
) -> None:
    jobs = {"poison": Life()} | {f"innocent {n}": Life() for n in range(companions)}
    deaths, ended = deaths_of(jobs, draw)
    assert deaths <= MAX_CRASHES
    assert ended == {"poison"}
    assert all(life.blames == 0 for name, life in jobs.items() if name != "poison")


@given(before=st.lists(st.integers(0, 9), max_size=6), draw=st.randoms(use_true_random=False))
def test_poison_ends_after_at_most_four_deaths_also_beside_jobs_with_other_crashes_behind_them(
    before: list[int], draw: random.Random
) -> None:
    jobs = {"poison": Life()} | {f"innocent {n}": Life(crashes) for n, crashes in enumerate(before)}
    assert deaths_of(jobs, draw)[0] <= MAX_CRASHES
