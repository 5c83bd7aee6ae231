"""What runs say while they run can be read by others, belongs to its run, and ends with its claim."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.model.job import Claim
from duetime.model.outcome import (
    MAX_SNOOZED,
    Cancelled,
    Failed,
    Interrupted,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
)
from duetime.model.reports import LogPart, NewLogPart, Progress
from duetime.model.retry import fixed
from duetime.model.states import State
from duetime.model.time import DAY
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.enqueue import ODD_TEXT
from duetime.testing.conformance.kit import finish, hire, job, prune, put, read, settlement, take, take_one
from duetime.testing.conformance.suite import StoreSuite

ENDS = [Succeeded("1"), Failed(error="boom"), Cancelled("off")]
RETURNS = [Released(), Failed(error="boom"), Interrupted(reason="stop")]
ONCE_MORE = fixed(1, 0)


def progress(claim: Claim, fraction: float, note: str = "") -> Progress:
    """What a run says about how far it is."""
    return Progress(claim.token, fraction, note)


def lines(claim: Claim, line: int, text: str, **more: Any) -> NewLogPart:
    """A part of a run's log, from some line on."""
    return NewLogPart(claim.token, claim.attempt, line, text, **more)


async def logged(store: Store, claim: Claim) -> list[tuple[int, int, str]]:
    """The log of a job: attempt, first line and text."""
    return [(part.attempt, part.line, part.text) for part in await store.logs(claim.job_id)]


async def said(store: Store, claim: Claim) -> tuple[float | None, str | None]:
    """How far a job is said to be."""
    record = await read(store, claim.job_id)
    return record.progress, record.progress_note


async def begun(store: Store) -> Claim:
    """A job that `w1` has just begun."""
    await hire(store, "w1")
    await put(store)
    return await take_one(store)


async def lost(store: Store, clock: FakeClock) -> Claim:
    """A claim that another worker has taken over."""
    await hire(store, "w1")
    await put(store)
    claim = await take_one(store)
    clock.advance("1m")
    await hire(store, "w2")
    await store.rescue("w2", "taken over")
    return claim


class TestProgress(StoreSuite):
    """`report`, of progress."""

    async def test_others_see_how_far_a_job_is(self, store: Store, other: Store) -> None:
        claim = await begun(store)
        assert await said(other, claim) == (None, None)
        await store.report([progress(claim, 0.4, "parsing")], [])
        assert await said(other, claim) == (0.4, "parsing")
        await store.report([progress(claim, 1)], [])
        assert await said(other, claim) == (1.0, None)

    async def test_each_job_of_a_batch_has_its_own(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([job(), job()])
        first, second = await take(store)
        await store.report([progress(first, 0.1), progress(second, 0.2, "half")], [])
        assert [await said(store, first), await said(store, second)] == [(0.1, None), (0.2, "half")]

    async def test_a_run_that_lost_its_claim_says_nothing(self, store: Store, clock: FakeClock) -> None:
        claim = await lost(store, clock)
        await store.report([progress(claim, 0.9)], [])
        assert await said(store, claim) == (None, None)

    @pytest.mark.parametrize("outcome", ENDS)
    async def test_a_run_that_has_ended_says_nothing_more(
        self, store: Store, clock: FakeClock, outcome: Outcome
    ) -> None:
        claim = await begun(store)
        await store.report([progress(claim, 0.4, "parsing")], [])
        await finish(store, claim, outcome, now=clock.now())
        await store.report([progress(claim, 0.9)], [])
        assert await said(store, claim) == (0.4, "parsing")

    @pytest.mark.parametrize("outcome", ENDS)
    async def test_the_last_word_comes_with_the_end(
        self, store: Store, clock: FakeClock, outcome: Outcome
    ) -> None:
        claim = await begun(store)
        await store.report([progress(claim, 0.4, "parsing")], [])
        await finish(store, claim, outcome, now=clock.now(), progress=progress(claim, 0.7, "sending"))
        assert await said(store, claim) == (0.7, "sending")

    @pytest.mark.parametrize("outcome", RETURNS)
    async def test_a_job_that_goes_back_starts_over(
        self, store: Store, clock: FakeClock, outcome: Outcome
    ) -> None:
        claim = await begun(store)
        await store.report([progress(claim, 0.4, "parsing")], [])
        last = progress(claim, 0.7)
        await finish(store, claim, outcome, now=clock.now(), policy=ONCE_MORE, progress=last)
        assert (await read(store, claim.job_id)).state is State.PENDING
        assert await said(store, claim) == (None, None)

    async def test_a_last_word_does_not_outlive_the_run_of_a_job_that_goes_back(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        said = Progress(claim.token, 0.9, "nearly")
        await finish(store, claim, Failed(error="boom"), now=clock.now(), policy=fixed(5, 1), progress=said)
        record = await read(store, claim.job_id)
        assert (record.state, record.progress, record.progress_note) == (State.PENDING, None, None)

    async def test_a_note_may_hold_any_text(self, store: Store) -> None:
        claim = await begun(store)
        await store.report([progress(claim, 0.5, ODD_TEXT)], [])
        assert await said(store, claim) == (0.5, ODD_TEXT)


class TestLogs(StoreSuite):
    """`report`, of logs, and `logs`."""

    async def test_others_read_what_a_run_has_logged(self, store: Store, other: Store) -> None:
        claim = await begun(store)
        assert await other.logs(claim.job_id) == []
        await store.report([], [lines(claim, 1, "one\ntwo"), lines(claim, 3, "three")])
        first = LogPart(job_id=claim.job_id, fence=1, attempt=1, line=1, text="one\ntwo")
        second = LogPart(job_id=claim.job_id, fence=1, attempt=1, line=3, text="three")
        assert await other.logs(claim.job_id) == [first, second]
        assert await other.logs(claim.job_id, after=(1, 1)) == [second]
        assert await other.logs(claim.job_id, after=(1, 3)) == []

    async def test_progress_and_logs_go_together(self, store: Store) -> None:
        claim = await begun(store)
        await store.report([progress(claim, 0.5)], [lines(claim, 1, "half")])
        assert await said(store, claim) == (0.5, None)
        assert await logged(store, claim) == [(1, 1, "half")]

    async def test_to_say_nothing_is_harmless(self, store: Store) -> None:
        await store.report([], [])

    async def test_a_part_is_stored_once_however_often_it_is_sent(
        self, store: Store, clock: FakeClock
    ) -> None:
        claim = await begun(store)
        for _ in range(2):
            await store.report([], [lines(claim, 1, "one")])
        for _ in range(2):
            await finish(store, claim, now=clock.now(), logs=(lines(claim, 1, "one"), lines(claim, 2, "two")))
        # Sent before the end, and arriving after it.
        await store.report([], [lines(claim, 1, "one")])
        assert await logged(store, claim) == [(1, 1, "one"), (1, 2, "two")]

    @pytest.mark.covers("endless-logs")
    async def test_of_a_job_that_is_put_off_for_ever_the_latest_tries_are_kept(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", lease=DAY)
        await store.enqueue([job(id="busy"), job(id="calm")])
        for number in range(MAX_SNOOZED + 3):
            for claim in await take(store, limit=2):
                failed = number == 1 or claim.job_id == "calm"
                outcome = Failed(error="boom", wait=0) if failed else Snoozed(0)
                said = (lines(claim, 1, f"line {number}"),)
                await finish(store, claim, outcome, now=clock.now(), policy=fixed(2, 0), logs=said)
            clock.advance(2)
        tried = await store.attempts("busy")
        assert (len(tried), tried[0].outcome, tried[0].fence) == (MAX_SNOOZED + 1, "error", 2)
        assert tried[1].fence == 4
        assert len(await store.logs("busy")) == MAX_SNOOZED
        assert len(await store.attempts("calm")) == 2
        assert len(await store.logs("calm")) == 3

    async def test_a_run_that_lost_its_claim_logs_nothing(self, store: Store, clock: FakeClock) -> None:
        claim = await lost(store, clock)
        await store.report([], [lines(claim, 1, "late")])
        assert await finish(store, claim, now=clock.now(), logs=(lines(claim, 2, "later"),)) == frozenset()
        assert await logged(store, claim) == []

    async def test_what_was_logged_before_the_worker_died_stays(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await store.report([], [lines(claim, 1, "last words")])
        clock.advance("1m")
        await hire(store, "w2")
        await store.rescue("w2", "taken over")
        assert await logged(store, claim) == [(1, 1, "last words")]

    @pytest.mark.parametrize("outcome", [*ENDS, *RETURNS])
    async def test_the_last_lines_come_with_the_end_of_the_run(
        self, store: Store, clock: FakeClock, outcome: Outcome
    ) -> None:
        claim = await begun(store)
        accepted = await finish(
            store, claim, outcome, now=clock.now(), policy=ONCE_MORE, logs=(lines(claim, 1, "bye"),)
        )
        assert accepted == {claim.token}
        assert await logged(store, claim) == [(1, 1, "bye")]

    async def test_in_a_batch_only_what_is_accepted_is_logged(self, store: Store, clock: FakeClock) -> None:
        late = await lost(store, clock)
        await put(store)
        claim = await take_one(store, "w2")
        sent = [
            settlement(run, Succeeded(), now=clock.now(), logs=(lines(run, 1, "bye"),))
            for run in (late, claim)
        ]
        assert await store.settle(sent) == {claim.token}
        assert await logged(store, late) == []
        assert await logged(store, claim) == [(1, 1, "bye")]

    async def test_each_try_has_its_own_log(self, store: Store, clock: FakeClock) -> None:
        first = await begun(store)
        await finish(
            store,
            first,
            Failed(error="boom"),
            now=clock.now(),
            policy=ONCE_MORE,
            logs=(lines(first, 1, "first"),),
        )
        second = await take_one(store)
        await finish(store, second, now=clock.now(), logs=(lines(second, 1, "second"),))
        assert await logged(store, first) == [(1, 1, "first"), (2, 1, "second")]
        assert [part.text for part in await store.logs(first.job_id, after=(first.fence, 1))] == ["second"]

    async def test_a_log_that_has_grown_too_long_makes_room(self, store: Store, clock: FakeClock) -> None:
        claim = await begun(store)
        for line in range(1, 6):
            await store.report([], [lines(claim, line, f"line {line}")])
        await store.report([], [lines(claim, 6, "line 6", drop=(2, 4))])
        assert [line for _, line, _ in await logged(store, claim)] == [1, 4, 5, 6]
        await finish(store, claim, now=clock.now(), logs=(lines(claim, 7, "line 7", drop=(2, 6)),))
        assert [line for _, line, _ in await logged(store, claim)] == [1, 6, 7]

    async def test_a_run_that_lost_its_claim_drops_nothing(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await store.report([], [lines(claim, 1, "one")])
        clock.advance("1m")
        await hire(store, "w2")
        await store.rescue("w2", "taken over")
        await store.report([], [lines(claim, 2, "two", drop=(1, 2))])
        assert await logged(store, claim) == [(1, 1, "one")]

    async def test_room_is_made_in_no_other_log(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([job(), job()])
        first, second = await take(store)
        await store.report([], [lines(first, 1, "one"), lines(second, 1, "one")])
        await store.report([], [lines(first, 2, "two", drop=(1, 2))])
        assert await logged(store, first) == [(1, 2, "two")]
        assert await logged(store, second) == [(1, 1, "one")]

    async def test_logs_go_with_their_job(self, store: Store, clock: FakeClock) -> None:
        claim = await begun(store)
        await finish(store, claim, now=clock.now(), logs=(lines(claim, 1, "bye"),))
        assert await prune(store, before=clock.now() + 1) == 1
        assert await logged(store, claim) == []
        await store.report([], [lines(claim, 1, "nobody")])
        assert await logged(store, claim) == []

    async def test_a_line_may_hold_any_text(self, store: Store) -> None:
        claim = await begun(store)
        await store.report([], [lines(claim, 1, ODD_TEXT), lines(claim, 2, "a\x00b\ud800c")])
        assert await logged(store, claim) == [(1, 1, ODD_TEXT), (1, 2, "a�b�c")]
