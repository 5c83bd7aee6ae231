from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from duetime.model.job import SOON, Claim, Token
from duetime.model.outcome import (
    LEAST_SNOOZE,
    MAX_BLAMES,
    Cancelled,
    Crashed,
    Failed,
    Interrupted,
    Outcome,
    Released,
    Settlement,
    Skipped,
    Snoozed,
    Succeeded,
    as_stored,
    decide,
    expired,
    leaves_work,
)
from duetime.model.retry import NO_RETRIES, RetryPolicy, computed, exponential, fixed
from duetime.model.states import LEGAL, State
from duetime.model.time import SECOND

NOW = 1_700_000_000_000_000
STARTED = NOW - 3 * SECOND

CLAIM: dict[str, Any] = {
    "job_id": "j1",
    "fence": 4,
    "claim_id": "c1",
    "task": "greet",
    "payload": "{}",
    "queue": "default",
    "priority": 5,
    "due_at": NOW - 5 * SECOND,
    "claimed_at": STARTED,
    "failures": 0,
    "crashes": 0,
    "blames": 0,
    "on_crash": "retry",
    "retries": None,
    "timeout": None,
    "schedule": None,
    "occurrence": None,
    "cancel_requested_at": None,
}


def settle(
    outcome: Outcome, *, policy: RetryPolicy = NO_RETRIES, started_at: int | None = STARTED, **claim: Any
) -> Settlement:
    return decide(
        Claim(**CLAIM | claim),
        outcome,
        policy=policy,
        started_at=started_at,
        now=NOW,
        rng=random.Random(1),
    )


@pytest.mark.parametrize(
    ("outcome", "leaves"),
    [
        (Succeeded(), False),
        (Failed(error="boom", wait=SOON), True),
        (Failed(error="boom", wait=SOON + 1), False),
        (Snoozed(SOON + 1), False),
        (Released(), True),
    ],
)
def test_workers_are_told_of_a_job_that_goes_back_and_is_due_soon(outcome: Outcome, leaves: bool) -> None:
    assert leaves_work(settle(outcome, policy=fixed(1, 1))) is leaves


OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Succeeded, st.none() | st.text()),
    st.builds(Failed, error=st.text(), final=st.booleans(), wait=st.none() | st.integers(0, 10**9)),
    st.builds(Cancelled, st.text()),
    st.builds(Skipped, st.text()),
    st.builds(Snoozed, st.integers(0, 10**9)),
    st.builds(Released, st.integers(0, 10**9)),
    st.builds(Interrupted, reason=st.text()),
    st.builds(Crashed, worker=st.text(), started=st.booleans(), blamed=st.booleans()),
)


@given(
    outcome=OUTCOMES,
    failures=st.integers(0, 5),
    crashes=st.integers(0, 5),
    blames=st.integers(0, MAX_BLAMES - 1),
    retries=st.none() | st.integers(0, 5),
    on_crash=st.sampled_from(["retry", "fail"]),
    policy=st.sampled_from([NO_RETRIES, exponential(2), fixed(3, 1)]),
    expires_at=st.none() | st.integers(NOW - SECOND, NOW + 2 * SECOND),
    callbacks=st.sampled_from([None, "{}"]),
)
def test_every_decision_is_legal_and_complete(outcome: Outcome, policy: RetryPolicy, **claim: Any) -> None:
    made = settle(outcome, policy=policy, **claim)
    assert made.state in LEGAL[State.RUNNING]
    assert made.state is not State.RUNNING
    assert made.token == Token("j1", 4, "c1")
    assert made.state.terminal == (made.finished_at == NOW)
    assert made.failures - claim["failures"] + made.crashes - claim["crashes"] in (0, 1)
    assert 0 <= made.blames - claim["blames"] <= made.crashes - claim["crashes"]
    assert made.attempt is None or not made.state.terminal
    assert made.state is State.SUCCEEDED or made.result is None
    assert made.due_at is None or made.due_at >= NOW
    assert made.calls_back == (claim["callbacks"] is not None)


def test_success_records_the_result_and_forgets_earlier_errors() -> None:
    made = settle(Succeeded('"hi"'), failures=2)
    assert (made.state, made.result, made.failures, made.error) == (State.SUCCEEDED, '"hi"', 2, None)
    assert (made.started_at, made.finished_at) == (STARTED, NOW)


def test_a_result_that_could_not_be_kept_is_still_a_success() -> None:
    made = settle(Succeeded(result_error="not JSON"))
    assert (made.state, made.result, made.result_error) == (State.SUCCEEDED, None, "not JSON")


def test_a_failure_without_retries_is_final() -> None:
    made = settle(Failed(error="boom", traceback="line 1", reason="timeout"))
    assert (made.state, made.failures) == (State.FAILED, 1)
    assert (made.error, made.traceback, made.reason) == ("boom", "line 1", "timeout")
    assert made.attempt is None


def test_failures_of_one_kind_from_one_place_have_one_fingerprint() -> None:
    kind: dict[str, Any] = {"error_type": "app.Boom", "place": "app:work"}
    first = settle(Failed(error="boom", traceback="line 1", **kind)).fingerprint
    assert (
        settle(Failed(error="other text", traceback="line 9", **kind), policy=fixed(1, 0)).fingerprint
        == first
    )
    others = [
        settle(Failed(error="boom", **kind), task="other"),
        settle(Failed(error="boom", error_type="app.Bang", place="app:work")),
        settle(Failed(error="boom", error_type="app.Boom", place="app:rest")),
        settle(Failed(error="boom", reason="timeout")),
        settle(Crashed(worker="w1", started=True, blamed=False), on_crash="fail"),
    ]
    assert len({first, *(other.fingerprint for other in others)}) == 6
    assert settle(Cancelled("enough")).fingerprint is None


def test_a_failure_with_retries_left_goes_back_after_the_wait() -> None:
    made = settle(Failed(error="boom", traceback="line 1"), policy=fixed(2, 10), failures=1)
    assert (made.state, made.failures, made.finished_at) == (State.PENDING, 2, None)
    assert made.due_at == NOW + 10 * SECOND
    assert (made.attempt, made.error, made.traceback, made.ended_at) == ("error", "boom", "line 1", NOW)


@pytest.mark.parametrize(("failures", "state"), [(0, State.PENDING), (1, State.PENDING), (2, State.FAILED)])
@pytest.mark.covers("retry-budget")
def test_two_retries_make_three_tries(failures: int, state: State) -> None:
    assert settle(Failed(error="boom"), policy=fixed(2, 0), failures=failures).state is state


@pytest.mark.covers("retry-budget")
def test_crashes_do_not_use_up_retries() -> None:
    assert settle(Failed(error="boom"), policy=fixed(1, 0), crashes=5).state is State.PENDING


@pytest.mark.parametrize(("retries", "state"), [(0, State.FAILED), (1, State.PENDING)])
def test_a_jobs_own_number_of_retries_rules(retries: int, state: State) -> None:
    policy = NO_RETRIES if retries else fixed(5, 0)
    assert settle(Failed(error="boom"), policy=policy, retries=retries).state is state


def test_a_final_failure_is_not_tried_again() -> None:
    made = settle(Failed(error="cannot be decoded", final=True), policy=fixed(5, 0))
    assert (made.state, made.failures) == (State.FAILED, 1)


def test_a_retry_policy_that_raises_costs_the_job_nothing_but_its_own_wait() -> None:
    def broken(failures: int) -> float:
        return 1 / (failures - failures)

    made = settle(Failed(error="boom"), policy=computed(3, broken))
    assert made.state is State.PENDING
    assert made.due_at is not None
    assert NOW <= made.due_at <= NOW + 5 * SECOND
    assert made.error is not None
    assert made.error.startswith("boom\n")
    assert "retry policy raised ZeroDivisionError" in made.error


@pytest.mark.parametrize("wait", [10**30, -1, 1.5, None, True])
def test_a_retry_policy_that_answers_nonsense_is_overruled_by_the_usual_wait(wait: Any) -> None:
    class Odd:
        retries = 3

        def delay(self, failures: int, rng: random.Random) -> Any:
            return wait

    made = settle(Failed(error="boom"), policy=Odd())
    assert made.due_at is not None
    assert NOW <= made.due_at <= NOW + 5 * SECOND
    assert "retry policy" in (made.error or "")


def test_a_failure_may_bring_its_own_wait() -> None:
    made = settle(Failed(error="busy", wait=7 * SECOND), policy=fixed(2, 10))
    assert (made.state, made.due_at, made.failures) == (State.PENDING, NOW + 7 * SECOND, 1)
    assert settle(Failed(error="busy", wait=0), policy=fixed(2, 10)).due_at == NOW


def test_a_wait_of_its_own_gives_a_failure_no_more_retries() -> None:
    assert settle(Failed(error="busy", wait=SECOND)).state is State.FAILED


def test_a_snoozed_job_goes_back_and_pays_no_retry() -> None:
    made = settle(Snoozed(5 * SECOND), failures=1, crashes=1)
    assert (made.state, made.due_at, made.attempt) == (State.PENDING, NOW + 5 * SECOND, "snoozed")
    assert (made.failures, made.crashes, made.error) == (1, 1, None)


def test_a_snooze_is_never_so_short_that_the_job_runs_without_end() -> None:
    assert settle(Snoozed(0)).due_at == NOW + LEAST_SNOOZE
    assert settle(Snoozed(LEAST_SNOOZE + 1)).due_at == NOW + LEAST_SNOOZE + 1


def test_a_claim_expires_at_its_instant_and_not_before() -> None:
    assert expired(Claim(**CLAIM), NOW) is None
    assert expired(Claim(**CLAIM | {"expires_at": NOW + 1}), NOW) is None
    assert expired(Claim(**CLAIM | {"expires_at": NOW}), NOW) == Skipped("expired")


def test_a_skipped_run_says_why() -> None:
    made = settle(Skipped("expired"), started_at=None, failures=1)
    assert (made.state, made.reason, made.finished_at) == (State.SKIPPED, "expired", NOW)
    assert (made.started_at, made.failures, made.attempt) == (None, 1, None)


@pytest.mark.parametrize(("left", "state"), [(10, State.FAILED), (11, State.PENDING)])
def test_a_retry_that_would_come_too_late_is_not_made(left: int, state: State) -> None:
    made = settle(
        Failed(error="boom", traceback="line 1"), policy=fixed(2, 10), expires_at=NOW + left * SECOND
    )
    assert (made.state, made.error, made.traceback, made.failures) == (state, "boom", "line 1", 1)
    assert made.reason == ("expired" if state is State.FAILED else None)


@pytest.mark.parametrize(("left", "state"), [(5, State.SKIPPED), (6, State.PENDING)])
def test_a_snooze_past_the_deadline_skips_the_job(left: int, state: State) -> None:
    made = settle(Snoozed(5 * SECOND), expires_at=NOW + left * SECOND)
    assert (made.state, made.reason) == (state, "expired" if state is State.SKIPPED else None)


def test_a_crash_past_the_deadline_is_the_end() -> None:
    made = settle(crash(), expires_at=NOW)
    assert (made.state, made.reason, made.crashes) == (State.FAILED, "crashed", 1)
    assert made.error == "worker w1 died while the job ran"


def test_a_cancelled_run_says_why() -> None:
    made = settle(Cancelled("asked to"))
    assert (made.state, made.reason, made.finished_at) == (State.CANCELLED, "asked to", NOW)


def test_a_release_costs_nothing_and_keeps_the_due_time() -> None:
    made = settle(Released(), failures=1, crashes=1, blames=1)
    assert (made.state, made.due_at, made.attempt) == (State.PENDING, None, None)
    assert (made.failures, made.crashes, made.blames) == (1, 1, 1)


def test_a_release_with_a_wait_moves_the_due_time() -> None:
    assert settle(Released(2 * SECOND)).due_at == NOW + 2 * SECOND


def test_an_interrupted_job_runs_again_at_once_and_the_try_is_kept() -> None:
    made = settle(Interrupted(reason="shutdown"), failures=1)
    assert (made.state, made.due_at, made.failures, made.crashes) == (State.PENDING, NOW, 1, 0)
    assert (made.attempt, made.reason) == ("interrupted", "shutdown")


def test_an_interrupted_job_that_must_not_run_twice_is_cancelled() -> None:
    made = settle(Interrupted(reason="shutdown"), on_crash="fail")
    assert (made.state, made.reason) == (State.CANCELLED, "shutdown")


def crash(*, started: bool = True, blamed: bool = False) -> Crashed:
    return Crashed(worker="w1", started=started, blamed=blamed)


@pytest.mark.parametrize("on_crash", ["retry", "fail"])
def test_an_unstarted_claim_of_a_dead_worker_is_as_good_as_new(on_crash: str) -> None:
    made = settle(crash(started=False), started_at=None, on_crash=on_crash, failures=1, crashes=1)
    assert (made.state, made.due_at, made.attempt) == (State.PENDING, None, None)
    assert (made.failures, made.crashes, made.blames) == (1, 1, 0)


def test_a_started_job_of_a_dead_worker_runs_again_at_once_when_others_are_suspect_too() -> None:
    made = settle(crash(), crashes=7)
    assert (made.state, made.due_at, made.attempt) == (State.PENDING, NOW, "lost")
    assert (made.failures, made.crashes, made.blames) == (0, 8, 0)
    assert made.error == "worker w1 died while the job ran"


def test_a_job_that_must_not_run_twice_fails_with_its_worker() -> None:
    made = settle(crash(), on_crash="fail")
    assert (made.state, made.reason, made.crashes) == (State.FAILED, "crashed", 1)
    assert made.error == "worker w1 died while the job ran"


@pytest.mark.covers("poison-job")
def test_the_only_suspect_waits_longer_each_time_and_is_given_up_at_the_third() -> None:
    first, second, third = (settle(crash(blamed=True), blames=blames, crashes=blames) for blames in range(3))
    assert (first.due_at, first.blames) == (NOW + SECOND, 1)
    assert (second.due_at, second.blames) == (NOW + 4 * SECOND, 2)
    assert (third.state, third.reason, third.blames, third.crashes) == (State.FAILED, "crashed", 3, 3)
    assert third.error is not None
    assert "only suspect" in third.error


def test_the_wait_after_crashes_grows_to_a_minute_and_no_further() -> None:
    waiting = [settle(crash(started=False, blamed=True), blames=blames) for blames in (0, 1, 2, 3, 4, 999)]
    assert [made.due_at for made in waiting] == [NOW + wait * SECOND for wait in (1, 4, 16, 60, 60, 60)]


def test_a_result_that_is_not_to_be_kept_is_told_and_not_written() -> None:
    change = settle(Succeeded('"secret"'), result_ttl=0)
    assert change.result == '"secret"'
    written = as_stored(change)
    assert (written.result, written.result_error) == (None, "its result is not kept")
    assert settle(Succeeded('"kept"'), result_ttl=1, failure_ttl=0).result == '"kept"'


def test_a_result_that_could_not_be_stored_is_not_missed_where_none_is_kept() -> None:
    written = as_stored(settle(Succeeded(None, "it is not JSON"), result_ttl=0))
    assert written.result_error == "its result is not kept"


def test_a_job_that_returned_nothing_has_lost_nothing() -> None:
    assert as_stored(settle(Succeeded(None), result_ttl=0)).result_error is None


@pytest.mark.parametrize("policy", [NO_RETRIES, fixed(1, 1)])
def test_an_error_that_is_not_to_be_kept_is_not_written_not_even_between_tries(policy: RetryPolicy) -> None:
    failed = Failed(error="secret", traceback="secret")
    change = settle(failed, policy=policy, failure_ttl=0)
    assert change.error == "secret"
    written = as_stored(change)
    assert (written.error, written.traceback, written.failures) == (None, None, 1)
    assert as_stored(settle(failed, policy=policy, result_ttl=0)).error == "secret"
