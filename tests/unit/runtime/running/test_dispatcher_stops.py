"""A dispatcher ends runs: on request, after their grace time, and when their claim is lost."""

from __future__ import annotations

import asyncio

import pytest

from duetime import current_job
from duetime.model.job import Token
from duetime.model.outcome import Cancelled, Interrupted, Settlement
from duetime.model.retry import fixed
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.runtime.running.run import StopCause
from tests.unit.runtime.kit import claim
from tests.unit.runtime.running.dispatching import NOW, Bench, nothing


class Careful:
    """A handler that does not end before it is clean, however often it is cancelled."""

    def __init__(self) -> None:
        self.begun, self.clean = asyncio.Event(), asyncio.Event()
        self.cancelled = 0

    async def run(self) -> None:
        self.begun.set()
        while not self.clean.is_set():
            try:
                await self.clean.wait()
            except asyncio.CancelledError:
                self.cancelled += 1


async def stopped_untidily(cause: StopCause) -> Settlement:
    """Stop a handler whose clean-up raises, and return how its run was settled."""
    begun = asyncio.Event()

    async def untidy() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise LookupError

    bench = Bench(untidy, retry=fixed(3, 7))
    bench.dispatcher.start_all([claim("a")])
    await asyncio.wait_for(begun.wait(), 5)
    bench.dispatcher.stop("a", cause)
    await bench.drained()
    [change] = bench.settled
    return change


async def test_a_claim_that_is_to_be_cancelled_never_starts() -> None:
    bench = Bench(nothing)
    bench.dispatcher.start_all([claim("a", cancel_requested_at=1)])
    assert not bench.dispatcher.runs
    assert (bench.settled[0].state, bench.settled[0].started_at) == (State.CANCELLED, None)


async def test_a_cancel_that_overtakes_the_answer_of_a_claim_is_not_forgotten() -> None:
    bench = Bench(nothing)
    bench.dispatcher.cancel(frozenset({"a"}))
    bench.dispatcher.start_all([claim("a"), claim("b")])
    assert set(bench.dispatcher.runs) == {"b"}
    assert (bench.settled[0].token.job_id, bench.settled[0].state) == ("a", State.CANCELLED)
    await bench.drained()


async def test_a_cancel_between_claim_and_start_leaves_the_handler_uncalled() -> None:
    called: list[int] = []

    async def call() -> None:
        called.append(1)

    bench = Bench(call, cancel_grace=3600 * SECOND)
    bench.dispatcher.start_all([claim("a")])
    bench.dispatcher.cancel(frozenset({"a"}))
    await bench.drained()
    assert (bench.settled[0].state, called) == (State.CANCELLED, [])


@pytest.mark.parametrize(
    ("cause", "state"),
    [(Cancelled("by a user"), State.CANCELLED), (Interrupted(reason="a stop"), State.PENDING)],
)
async def test_a_run_that_sees_the_request_itself_ends_as_the_cause_says(
    cause: StopCause, state: State
) -> None:
    entered, asked = asyncio.Event(), asyncio.Event()

    async def look() -> None:
        entered.set()
        await asked.wait()
        current_job().check_cancelled()

    bench = Bench(look, cancel_grace=3600 * SECOND)
    bench.dispatcher.start_all([claim("a")])
    await asyncio.wait_for(entered.wait(), 5)
    bench.dispatcher.stop("a", cause)
    asked.set()
    await bench.drained()
    assert (bench.settled[0].state, bench.settled[0].reason) == (state, cause.reason)


async def test_a_handler_has_its_tasks_grace_time_to_see_the_request_itself() -> None:
    entered, seen = asyncio.Event(), asyncio.Event()

    async def look() -> None:
        entered.set()
        while not current_job().cancel_requested:  # noqa: ASYNC110 - the flag is all it has
            await asyncio.sleep(0)
        seen.set()
        current_job().check_cancelled()

    bench = Bench(look, cancel_grace=3600 * SECOND)
    bench.dispatcher.start_all([claim("a")])
    await asyncio.wait_for(entered.wait(), 5)
    bench.dispatcher.cancel(frozenset({"a"}))
    await bench.drained()
    [change] = bench.settled
    assert (change.state, change.reason) == (State.CANCELLED, "cancelled on request")
    assert seen.is_set(), "it was cancelled before it could look"


async def test_after_the_grace_time_the_handler_is_cancelled() -> None:
    entered, ended = asyncio.Event(), asyncio.Event()

    async def ignore() -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    bench = Bench(ignore, cancel_grace=SECOND // 50)
    bench.dispatcher.start_all([claim("a")])
    await asyncio.wait_for(entered.wait(), 5)
    bench.dispatcher.cancel(frozenset({"a"}))
    await asyncio.sleep(0)
    assert not ended.is_set()
    await bench.drained()
    assert (ended.is_set(), bench.settled[0].state) == (True, State.CANCELLED)


async def test_a_run_is_cancelled_once_however_often_it_is_asked_for_until_the_worker_stops() -> None:
    handler = Careful()
    bench = Bench(handler.run)
    bench.dispatcher.start_all([claim("a")])
    await asyncio.wait_for(handler.begun.wait(), 5)
    for _ in range(3):
        bench.dispatcher.cancel(frozenset({"a"}))
        await asyncio.sleep(0)
    asked = handler.cancelled
    bench.dispatcher.stop_all(Cancelled("stopped"))
    await asyncio.sleep(0)
    handler.clean.set()
    await bench.drained()
    assert (asked, handler.cancelled) == (1, 2)


async def test_a_run_is_told_to_stop_when_its_claim_is_gone_and_not_while_that_is_unsure() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    bench = Bench(wait)
    bench.dispatcher.start_all([claim("kept", claimed_at=1)])
    bench.dispatcher.start_all([claim("lost", claimed_at=1)])
    bench.dispatcher.start_all([claim("fresh", claimed_at=NOW)])
    await asyncio.sleep(0)
    held = frozenset({Token("kept", 1, "claim")})
    bench.dispatcher.stop_lost(held, NOW + SECOND // 2)
    stopping = {job_id for job_id, run in bench.dispatcher.runs.items() if run.stopping}
    assert stopping == {"lost"}
    bench.dispatcher.stop_all(Cancelled("the end"))
    await bench.drained()
    assert {(change.token.job_id, change.state) for change in bench.settled} == {
        ("kept", State.CANCELLED),
        ("fresh", State.CANCELLED),
        ("lost", State.PENDING),
    }


async def test_a_run_whose_own_transaction_ends_its_job_is_not_taken_for_lost() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    bench = Bench(wait)
    bench.dispatcher.start_all([claim("settled", claimed_at=1)])
    await asyncio.sleep(0)
    run = bench.dispatcher.runs["settled"]
    run.settling = True
    bench.dispatcher.stop_lost(frozenset(), NOW)
    assert run.stopping is None
    bench.dispatcher.stop_all(Cancelled("the end"))
    await bench.drained()


async def test_a_run_that_was_told_to_end_is_not_tried_again_when_its_clean_up_raises() -> None:
    change = await stopped_untidily(Cancelled("enough"))
    assert (change.state, change.reason, change.error) == (State.CANCELLED, "enough", "LookupError")
    assert (change.finished_at, change.due_at, change.failures) == (NOW, None, 1)


async def test_a_run_that_was_interrupted_goes_back_although_its_clean_up_raises() -> None:
    assert (await stopped_untidily(Interrupted(reason="stopped"))).state is State.PENDING


async def test_a_run_in_its_time_of_grace_is_cancelled_once_when_its_claim_is_lost() -> None:
    handler = Careful()
    bench = Bench(handler.run, cancel_grace=3600 * SECOND)
    bench.dispatcher.start_all([claim("a", claimed_at=1)])
    await asyncio.wait_for(handler.begun.wait(), 5)
    bench.dispatcher.cancel(frozenset({"a"}))
    await asyncio.sleep(0)
    assert handler.cancelled == 0
    for _ in range(3):
        bench.dispatcher.stop_lost(frozenset(), NOW)
        await asyncio.sleep(0)
    handler.clean.set()
    await bench.drained()
    assert handler.cancelled == 1, "it has no grace any more, and can clean up in peace"
