"""A dispatcher runs what is claimed, in slots that it gives back whatever happens."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from duetime import current_job
from duetime.model.outcome import Outcome, Succeeded
from duetime.model.reports import NewLogPart, Progress
from duetime.model.retry import computed, fixed
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.runtime.running.executor import Executor
from duetime.runtime.running.run import Run, current_run
from duetime.runtime.settling.job_log import MAX_LINES, log
from tests.unit.runtime.kit import claim
from tests.unit.runtime.running.dispatching import NOW, Bench, nothing


async def broken() -> None:
    raise ValueError


def broken_in_thread() -> None:
    raise ValueError


async def test_a_claim_takes_a_slot_and_gives_it_back_with_a_settlement() -> None:
    bench = Bench(nothing)
    bench.dispatcher.start_all([claim("a")])
    assert bench.slots.taken == 1
    await bench.drained()
    assert (bench.slots.taken, bench.freed, bench.dispatcher.done) == (0, 1, 1)
    [change] = bench.settled
    assert (change.state, change.started_at, change.finished_at) == (State.SUCCEEDED, NOW, NOW)


async def test_a_result_that_could_not_be_stored_is_logged_also_while_many_succeed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR, logger=log.name)
    bench = Bench(nothing)
    for n in range(MAX_LINES + 1):
        bench.dispatcher.settle(claim(str(n)), Succeeded())
    bench.dispatcher.settle(claim("lost"), Succeeded(None, "the result is not JSON"))
    assert [record.getMessage() for record in caplog.records] == [
        "job lost of task succeeded (attempt 1); the result is not JSON"
    ]


async def test_the_pace_of_a_task_is_of_its_own_runs() -> None:
    bench = Bench(nothing)
    bench.dispatcher.speed.by_task["other"] = 7
    bench.dispatcher.start_all([claim(str(n)) for n in range(10)])
    await bench.drained()
    assert 0 < bench.dispatcher.speed.by_task["task"] < SECOND
    assert bench.dispatcher.speed.by_task["other"] == 7


async def test_the_pace_does_not_count_the_wait_for_those_that_were_started_together() -> None:
    async def slow() -> None:
        bench.time.instant += SECOND

    bench = Bench(slow)
    bench.dispatcher.speed.duration = bench.dispatcher.speed.by_task["task"] = SECOND
    bench.dispatcher.start_all([claim(str(n)) for n in range(10)])
    await bench.drained()
    assert (bench.dispatcher.speed.duration, bench.dispatcher.speed.by_task["task"]) == (SECOND, SECOND)


@pytest.mark.parametrize("function", [nothing, broken, broken_in_thread])
async def test_a_run_that_has_ended_leaves_nothing_to_the_garbage_collector(
    function: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    # A record that is kept keeps its exception, and that the thread's frames.
    caplog.set_level(logging.CRITICAL, log.name)
    bench = Bench(function)
    gc.disable()
    try:
        bench.dispatcher.start_all([claim("a")])
        gone, loop = asyncio.Event(), asyncio.get_running_loop()
        weakref.finalize(bench.dispatcher.runs["a"], loop.call_soon_threadsafe, gone.set)
        await bench.drained()
        await asyncio.wait_for(gone.wait(), 5)
    finally:
        gc.enable()


async def test_a_claim_that_finds_no_slot_is_left_to_the_caller() -> None:
    bench = Bench(nothing)
    claims = [claim(str(n)) for n in range(12)]
    assert bench.dispatcher.start_all(claims) == claims[10:]
    assert bench.dispatcher.start_all(claims[10:]) == claims[10:]
    assert (bench.slots.taken, len(bench.dispatcher.runs)) == (10, 10)
    await bench.drained()
    assert [made.token.job_id for made in bench.settled] == [str(n) for n in range(10)]
    assert not bench.dispatcher.start_all(claims[10:])
    await bench.drained()


async def test_slots_that_come_free_in_one_turn_of_the_loop_are_told_of_together() -> None:
    done = asyncio.Event()

    async def wait() -> None:
        await done.wait()

    bench = Bench(wait)
    bench.dispatcher.start_all([claim(str(n)) for n in range(10)])
    await asyncio.sleep(0)
    assert bench.freed == 0
    done.set()
    await bench.drained()
    assert bench.slots.taken == 0
    assert bench.freed <= 2, "for all of them, and at once when nothing is left"


async def test_other_threads_are_let_in_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def end_at_once() -> None:
        pass

    let_in: list[float] = []
    monkeypatch.setattr("duetime.runtime.running.dispatcher.time.sleep", let_in.append)
    bench = Bench(end_at_once)
    for n in range(0, 130, 10):
        bench.dispatcher.start_all([claim(str(n + i)) for i in range(10)])
        await bench.drained()
    assert let_in == [0, 0]


async def test_a_slot_is_told_of_while_other_jobs_go_on() -> None:
    started = asyncio.Event()

    async def end_one() -> None:
        if current_job().id == "long":
            await started.wait()

    bench = Bench(end_one)
    bench.dispatcher.start_all([claim("long"), claim("short")])
    for _ in range(3):
        await asyncio.sleep(0)
    assert (bench.freed, bench.slots.taken) == (1, 1)
    started.set()
    await bench.drained()


async def test_a_task_that_is_not_known_here_goes_back() -> None:
    bench = Bench(nothing)
    bench.dispatcher.start_all([claim("a", task="strange")])
    [released] = bench.settled
    assert (released.state, released.due_at, released.attempt) == (State.PENDING, NOW + SECOND, None)
    assert not bench.dispatcher.runs


async def test_a_claim_whose_job_has_expired_is_skipped_without_a_run() -> None:
    bench = Bench(nothing)
    bench.dispatcher.start_all([claim("late", expires_at=NOW)])
    bench.dispatcher.start_all([claim("in time", expires_at=NOW + 1)])
    assert set(bench.dispatcher.runs) == {"in time"}
    [skipped] = bench.settled
    assert (skipped.state, skipped.reason, skipped.started_at) == (State.SKIPPED, "expired", None)
    await bench.drained()


async def test_a_run_that_has_recorded_its_own_end_is_not_settled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def settle_itself(self: Executor, run: Run) -> Outcome:
        run.verdict = Succeeded()
        return run.verdict

    monkeypatch.setattr(Executor, "execute", settle_itself)
    bench = Bench(nothing)
    bench.dispatcher.start_all([claim("a")])
    await bench.drained()
    assert not bench.settled
    assert (bench.slots.taken, bench.freed, bench.dispatcher.done) == (0, 1, 1)


async def test_what_a_run_said_last_comes_with_its_settlement() -> None:
    async def speak() -> None:
        current_job().progress(0.5, "half")
        say("hello")

    bench = Bench(speak)
    bench.dispatcher.start_all([claim("a")])
    await bench.drained()
    [change] = bench.settled
    assert change.progress == Progress(change.token, 0.5, "half")
    assert change.logs == (NewLogPart(change.token, 1, 1, "hello"),)
    await bench.reporter.stop()
    assert bench.store.reported == [], "it was said already"


async def test_a_run_that_has_recorded_its_own_end_says_the_rest_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[Run] = []

    async def settle_itself(self: Executor, run: Run) -> Outcome:
        current_run.set(run)
        say("hello")
        ended.append(run)
        run.verdict = Succeeded()
        return run.verdict

    monkeypatch.setattr(Executor, "execute", settle_itself)
    bench = Bench(nothing)
    bench.dispatcher.start_all([claim("a")])
    await bench.drained()
    [run] = ended
    assert run.output is not None
    run.output.add_log("too late")
    await bench.reporter.stop()
    assert bench.store.reported == ["hello"]


def say(text: str) -> None:
    output = current_run.get().open_output()
    assert output is not None
    output.add_log(text)


@pytest.mark.covers("poison-job")
async def test_jobs_around_which_workers_keep_dying_run_one_at_a_time() -> None:
    go_on, begun = asyncio.Event(), list[str]()

    async def wait() -> None:
        begun.append(current_run.get().claim.job_id)
        await go_on.wait()

    bench = Bench(wait)
    suspects = [claim(name, crashes=2) for name in ("first", "second")]
    bench.dispatcher.start_all([*suspects, claim("innocent"), claim("unlucky", crashes=1)])
    assert set(bench.dispatcher.runs) == {"first", "innocent", "unlucky"}
    [released] = bench.settled
    assert (released.token.job_id, released.state, released.due_at) == ("second", State.PENDING, NOW + SECOND)
    assert (released.crashes, released.attempt) == (2, None)
    await asyncio.sleep(0)
    assert begun == ["innocent", "unlucky"], "a suspect starts when the store knows that it is the only one"
    await bench.settler.round()
    await asyncio.sleep(0)
    assert begun[2:] == ["first"]
    go_on.set()
    await bench.drained()


async def test_a_job_whose_earlier_run_has_not_ended_here_is_given_back() -> None:
    go_on = asyncio.Event()

    async def wait() -> None:
        await go_on.wait()

    bench = Bench(wait)
    bench.dispatcher.start_all([claim("again", fence=1)])
    bench.dispatcher.start_all([claim("again", fence=3)])
    assert bench.slots.taken == 1
    [released] = bench.settled
    assert (released.token.fence, released.state) == (3, State.PENDING)
    go_on.set()
    await bench.drained()
    assert bench.slots.taken == 0


async def test_a_failure_goes_back_with_the_wait_of_its_tasks_policy() -> None:
    async def fail() -> None:
        raise LookupError

    bench = Bench(fail, retry=fixed(1, 7))
    bench.dispatcher.start_all([claim("a")])
    await bench.drained()
    bench.dispatcher.start_all([claim("a", failures=1)])
    await bench.drained()
    again, given_up = bench.settled
    assert (again.state, again.due_at, again.failures, again.attempt) == (
        State.PENDING, NOW + 7 * SECOND, 1, "error",
    )  # fmt: skip
    assert (given_up.state, given_up.failures) == (State.FAILED, 2)
    assert bench.outcomes.failed == 1


async def test_a_retry_policy_that_raises_loses_nothing() -> None:
    async def fail() -> None:
        raise LookupError

    bench = Bench(fail, retry=computed(3, lambda failures: failures // 0))
    bench.dispatcher.start_all([claim("a")])
    await bench.drained()
    [change] = bench.settled
    assert change.state is State.PENDING
    assert change.error is not None
    assert "retry policy raised" in change.error


async def test_a_claim_is_known_while_it_runs_and_until_it_is_written() -> None:
    bench = Bench(nothing)
    token = claim("a").token
    assert bench.dispatcher.unknown([token]) == {token}
    bench.dispatcher.start_all([claim("a")])
    assert bench.dispatcher.unknown([token]) == set()
    assert bench.dispatcher.unknown([token, token._replace(fence=2)]) == {token._replace(fence=2)}
    await bench.drained()
    assert bench.dispatcher.unknown([token]) == set()
    await bench.settler.round()
    assert bench.dispatcher.unknown([token]) == {token}


@pytest.mark.covers("slot-lost")
@pytest.mark.parametrize("where", ["execute", "settle"])
async def test_no_defect_costs_a_slot(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def break_down(self: Executor, run: Run) -> Outcome:
        raise LookupError(run.claim.job_id)

    def refuse(*args: object, **options: object) -> int:
        raise LookupError

    bench = Bench(nothing)
    if where == "execute":
        monkeypatch.setattr(Executor, "execute", break_down)
    else:
        monkeypatch.setattr(bench.dispatcher, "_settlement", refuse)
    bench.dispatcher.start_all([claim("a")])
    await bench.drained()
    assert (bench.slots.taken, bench.freed, bench.dispatcher.done) == (0, 1, 1)
    assert [(change.state, change.error) for change in bench.settled] == (
        [(State.FAILED, "LookupError: a")] if where == "execute" else []
    )
    unknown = bench.dispatcher.unknown([claim("a").token])
    assert len(unknown) == (where == "settle"), "else it could not be given back"
