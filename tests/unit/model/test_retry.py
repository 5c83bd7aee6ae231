from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from duetime.errors import InvalidDuration, InvalidOption
from duetime.model.retry import (
    MAX_RETRIES,
    NO_RETRIES,
    Exponential,
    Listed,
    RetryPolicy,
    computed,
    exponential,
    fixed,
    retry_policy,
)
from duetime.model.time import SECOND, Micros


def waits(policy: RetryPolicy, count: int) -> list[float]:
    rng = random.Random(7)
    return [policy.delay(failures, rng) / SECOND for failures in range(1, count + 1)]


def test_exponential_waits_double_from_five_seconds_up_to_five_minutes() -> None:
    assert waits(exponential(jitter=False), 8) == [5, 10, 20, 40, 80, 160, 300, 300]


def test_jitter_draws_from_the_whole_range_up_to_the_bound() -> None:
    policy, rng = exponential(), random.Random(1)
    drawn = [policy.delay(3, rng) for _ in range(2_000)]
    assert 0 <= min(drawn) < 1 * SECOND
    assert 19 * SECOND < max(drawn) <= 20 * SECOND


@given(
    failures=st.integers(1, MAX_RETRIES + 1),
    base=st.integers(0, 10**6),
    factor=st.floats(1, 1_000),
    cap=st.integers(0, 10**6),
    jitter=st.booleans(),
)
def test_an_exponential_wait_is_whole_and_never_beyond_its_cap(
    failures: int, base: int, factor: float, cap: int, jitter: bool
) -> None:
    wait = exponential(3, base=base, factor=factor, cap=cap, jitter=jitter).delay(failures, random.Random(1))
    assert isinstance(wait, int)
    assert 0 <= wait <= cap * SECOND


@pytest.mark.parametrize("factor", [1, 2, 1_000, 1.5])
def test_waits_from_nothing_stay_nothing_however_many_failures(factor: float) -> None:
    assert exponential(base=0, factor=factor, jitter=False).delay(MAX_RETRIES, random.Random()) == 0


@pytest.mark.parametrize("factor", [0, 0.99, -2, math.nan, math.inf, 1_001, 10**400, "2", None, True])
def test_a_factor_that_does_not_let_waits_grow_is_refused(factor: Any) -> None:
    with pytest.raises(InvalidOption, match="factor must be a number from 1 to 1000"):
        exponential(factor=factor)


@pytest.mark.parametrize("base", [-1, math.nan, "soon", None])
def test_a_bad_wait_is_refused_by_name(base: Any) -> None:
    with pytest.raises(InvalidDuration, match=r"^base "):
        exponential(base=base)


def test_fixed_waits_are_all_the_same() -> None:
    policy = fixed(4, "10s")
    assert (policy.retries, waits(policy, 3)) == (4, [10, 10, 10])


def test_a_list_gives_each_wait_once_and_then_no_more() -> None:
    policy = retry_policy([1, "10s", "5m"])
    assert (policy.retries, waits(policy, 3)) == (3, [1, 10, 300])


def test_the_last_wait_of_a_list_serves_a_job_that_asks_for_more_retries() -> None:
    assert waits(retry_policy([1, 2]), 4) == [1, 2, 2, 2]


def test_computed_waits_come_from_the_function() -> None:
    policy = computed(2, lambda failures: f"{failures}m")
    assert (policy.retries, waits(policy, 2)) == (2, [60, 120])


@pytest.mark.parametrize("answer", [-1, math.nan, "later", None])
def test_a_function_that_gives_no_duration_is_refused(answer: Any) -> None:
    with pytest.raises(InvalidDuration, match=r"^retry delay "):
        computed(1, lambda _: answer).delay(1, random.Random())


def test_computed_needs_a_function() -> None:
    with pytest.raises(InvalidOption, match="needs a function"):
        computed(1, 5)  # type: ignore[arg-type]


def test_a_number_means_exponential_waits() -> None:
    assert retry_policy(3) == exponential(3)


@pytest.mark.parametrize("value", [None, 0])
def test_no_retries_is_the_default(value: int | None) -> None:
    assert retry_policy(value) == NO_RETRIES
    assert NO_RETRIES.retries == 0


def test_a_job_that_asks_for_retries_where_the_task_has_none_gets_the_usual_waits() -> None:
    assert isinstance(NO_RETRIES, Exponential)
    assert NO_RETRIES.delay(3, random.Random(3)) == exponential(5).delay(3, random.Random(3)) > 0


def test_an_empty_list_means_none() -> None:
    assert retry_policy([]) == Listed(0, ())
    assert Listed(0, ()).delay(1, random.Random()) == 0


def test_a_policy_is_taken_as_it_is() -> None:
    policy = fixed(2, 1)
    assert retry_policy(policy) is policy


def test_a_policy_of_ones_own_is_taken_too() -> None:
    class Mine:
        retries = 2

        def delay(self, failures: int, rng: random.Random) -> Micros:
            return failures

    mine = Mine()
    assert retry_policy(mine) is mine


@pytest.mark.parametrize("value", ["3", b"3", 2.5, object(), {1, 2}, Exponential])
def test_what_is_no_policy_is_refused_with_examples(value: Any) -> None:
    with pytest.raises(InvalidOption, match=r"exponential\(3\), fixed\(3, 10\)"):
        retry_policy(value)


@pytest.mark.parametrize("value", [-1, True, MAX_RETRIES + 1])
def test_a_number_out_of_range_is_refused(value: int) -> None:
    with pytest.raises(InvalidOption, match="retries must be a whole number from 0 to 10,000"):
        retry_policy(value)
