"""A key has one live job, whoever asks for it at the same time, and everybody is told whose it is."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from duetime.errors import KeyTaken
from duetime.model.job import JobId, JobTerms, Key
from duetime.model.outcome import Failed, Interrupted, Released
from duetime.model.retry import fixed
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import SECOND
from duetime.stores.base import JobFilter, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import TASK, finish, hire, job, put, read, rescue, take, take_one
from duetime.testing.conformance.suite import StoreSuite

RETURN = Key(value="k")
REPLACE = Key(value="k", if_exists="replace")
RAISE = Key(value="k", if_exists="raise")
KEPT = Key(value="k", keep=10 * SECOND)
THROTTLED = Key(value="k", period=10 * SECOND)


async def jobs_of(store: Store) -> list[StoredJob]:
    """All jobs, oldest first."""
    return (await store.find(JobFilter(limit=1_000)))[::-1]


async def run(store: Store, clock: FakeClock) -> JobId:
    """Let a worker run the one job that is due to its end."""
    claim = await take_one(store)
    await finish(store, claim, now=clock.now())
    return claim.job_id


class TestKeys(StoreSuite):
    """`enqueue` of jobs with a key."""

    @pytest.mark.covers("key-conflict-is-told")
    async def test_a_second_request_is_served_by_the_job_that_waits(self, store: Store, other: Store) -> None:
        first = await put(store, key=RETURN, payload='{"n":1}')
        assert await put(other, key=RETURN, payload='{"n":2}') == first
        assert [(found.id, found.payload) for found in await jobs_of(store)] == [(first, '{"n":1}')]

    @pytest.mark.covers("key-conflict-is-told")
    async def test_a_second_request_is_served_by_the_job_that_runs(self, store: Store) -> None:
        await hire(store, "w1")
        first = await put(store, key=RETURN)
        await take_one(store)
        assert await put(store, key=RETURN) == first

    async def test_other_keys_other_tasks_and_no_key_are_apart(self, store: Store) -> None:
        asked = [
            job(key=RETURN),
            job(key=replace(RETURN, value="other")),
            job(key=RETURN, task="report"),
            job(),
            job(),
        ]
        assert await store.enqueue(asked) == [one.id for one in asked]
        assert len(await jobs_of(store)) == 5

    @pytest.mark.covers("key-conflict-is-told")
    async def test_other_arguments_are_told_in_the_log_and_those_of_the_first_stand(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        first = await put(store, key=RETURN, payload='{"n":1}')
        with caplog.at_level(logging.WARNING, logger="duetime"):
            await put(store, key=RETURN, payload='{"n":1}')
            assert caplog.messages == []
            await put(store, key=RETURN, payload='{"n":2}')
        (message,) = caplog.messages
        assert TASK in message
        assert "'k'" in message
        assert first in message

    @pytest.mark.covers("key-conflict-is-told")
    @pytest.mark.parametrize("running", [False, True])
    async def test_one_that_insists_on_its_own_job_is_refused_and_nothing_of_its_batch_is_stored(
        self, store: Store, *, running: bool
    ) -> None:
        await hire(store, "w1")
        first = await put(store, key=RETURN)
        if running:
            await take_one(store)
        before = await jobs_of(store)
        with pytest.raises(KeyTaken, match=first) as refused:
            await store.enqueue([job(), job(key=Key(value="free")), job(key=RAISE)])
        assert (refused.value.key, refused.value.job_id) == ("k", first)
        assert await jobs_of(store) == before

    async def test_one_that_insists_gets_its_job_when_the_key_is_free(self, store: Store) -> None:
        asked = job(key=RAISE)
        assert await store.enqueue([asked]) == [asked.id]

    @pytest.mark.covers("key-free-after-the-end")
    @pytest.mark.parametrize("policy", [RETURN, REPLACE, RAISE])
    async def test_the_key_is_free_when_the_job_has_ended(
        self, store: Store, clock: FakeClock, policy: Key
    ) -> None:
        await hire(store, "w1")
        first = await put(store, key=RETURN)
        await run(store, clock)
        second = await put(store, key=policy)
        assert second != first
        assert (await take_one(store)).job_id == second

    @pytest.mark.covers("key-free-after-the-end")
    async def test_every_way_to_end_frees_the_key(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store, key=RETURN)
        await finish(store, await take_one(store), Failed(error="boom"), now=clock.now())
        cancelled = await put(store, key=RETURN)
        await store.cancel([cancelled], reason="off")
        last = await put(store, key=RETURN)
        assert len({found.id for found in await jobs_of(store)}) == 3
        assert (await read(store, last)).state is State.PENDING

    async def test_a_job_that_waits_for_its_next_try_has_the_key(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        first = await put(store, key=RETURN)
        claim = await take_one(store)
        await finish(store, claim, Failed(error="boom"), now=clock.now(), policy=fixed(5, 1))
        assert await put(store, key=RETURN) == first

    async def test_an_answer_that_was_lost_can_be_asked_for_again(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        asked = job(key=RAISE)
        await store.enqueue([asked])
        assert await store.enqueue([asked]) == [asked.id]
        await run(store, clock)
        assert await store.enqueue([asked]) == [asked.id]
        await put(store, key=RETURN)
        assert await store.enqueue([asked]) == [asked.id]
        assert len(await jobs_of(store)) == 2

    async def test_odd_keys_are_keys(self, store: Store) -> None:
        for value in ("'; --", "é\N{PARTY POPPER}", " ", "K", "a\ufffdb", "x" * 500):
            first = await put(store, key=Key(value=value))
            assert await put(store, key=Key(value=value)) == first
        assert len(await jobs_of(store)) == 6


class TestBatchesOfKeys(StoreSuite):
    """`enqueue` of one key twice: as if the requests came one after the other."""

    async def test_the_second_is_served_by_the_first(self, store: Store) -> None:
        a, b, c = job(key=RETURN), job(key=RETURN), job()
        assert await store.enqueue([a, b, c]) == [a.id, a.id, c.id]
        assert {found.id for found in await jobs_of(store)} == {a.id, c.id}

    async def test_the_second_replaces_the_first(self, store: Store) -> None:
        a, b = job(key=RETURN, payload="1"), job(key=REPLACE, payload="2")
        assert await store.enqueue([a, b]) == [a.id, a.id]
        assert [found.payload for found in await jobs_of(store)] == ["2"]

    async def test_the_first_stands_when_the_second_does_not_ask_to_replace_it(self, store: Store) -> None:
        a, b = job(key=REPLACE, payload="1"), job(key=RETURN, payload="2")
        assert await store.enqueue([a, b]) == [a.id, a.id]
        assert [found.payload for found in await jobs_of(store)] == ["1"]

    @pytest.mark.covers("key-conflict-is-told")
    async def test_a_second_one_that_insists_refuses_the_batch(self, store: Store) -> None:
        with pytest.raises(KeyTaken):
            await store.enqueue([job(key=RETURN), job(key=RAISE)])
        assert await jobs_of(store) == []

    async def test_the_same_request_twice_is_one(self, store: Store) -> None:
        asked = job(key=RAISE)
        assert await store.enqueue([asked, asked]) == [asked.id, asked.id]


class TestReplacement(StoreSuite):
    """`if_exists="replace"`: what was asked for last is what runs."""

    async def test_a_job_that_waits_becomes_the_one_that_was_asked_for(
        self, store: Store, clock: FakeClock
    ) -> None:
        first = await put(store, key=RETURN, payload="1", terms=JobTerms(tags=("old",)))
        clock.advance(1)
        terms = JobTerms(
            expires=SECOND,
            tags=("a",),
            callbacks="{}",
            result_ttl=1,
            failure_ttl=2,
            secret="|a|",
            headers='{"a":"b"}',
        )
        asked = job(
            key=REPLACE,
            payload="2",
            delay=5,
            queue="mail",
            priority=1,
            on_crash="fail",
            retries=3,
            timeout=4,
            terms=terms,
        )
        assert await store.enqueue([asked]) == [first]
        (record,) = await jobs_of(store)
        named = ("payload", "queue", "priority", "on_crash", "retries", "timeout")
        assert [getattr(record, name) for name in named] == [getattr(asked, name) for name in named]
        assert (record.due_at, record.expires_at) == (clock.now() + 5, clock.now() + 5 + SECOND)
        assert (record.tags, record.callbacks, record.result_ttl, record.failure_ttl) == ("|a|", "{}", 1, 2)
        assert (record.headers, record.secret) == ('{"a":"b"}', "|a|")

    async def test_each_request_puts_the_due_time_off(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        first = await put(store, key=REPLACE, delay=5 * SECOND)
        for _ in range(3):
            clock.advance(4)
            assert await take(store) == []
            assert await put(store, key=REPLACE, delay=5 * SECOND) == first
        clock.advance(4)
        assert await take(store) == []
        clock.advance(1)
        assert (await take_one(store)).job_id == first

    async def test_a_job_that_waits_for_its_next_try_starts_afresh(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        first = await put(store, key=RETURN)
        await finish(store, await take_one(store), Failed(error="boom"), now=clock.now(), policy=fixed(9, 1))
        assert await put(store, key=REPLACE) == first
        claim = await take_one(store)
        assert (claim.failures, claim.attempt) == (0, 1)
        assert (await read(store, first)).error is None

    async def test_one_that_runs_gives_its_key_up_and_the_new_one_waits_behind_it(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        first = await put(store, key=RETURN, payload="1")
        claim = await take_one(store)
        second = await put(store, key=REPLACE, payload="2")
        assert second != first
        assert await put(store, key=REPLACE, payload="3") == second
        assert await finish(store, claim, now=clock.now()) == {claim.token}
        assert [(found.id, found.payload) for found in await jobs_of(store)] == [(first, "1"), (second, "3")]

    @pytest.mark.parametrize(
        "outcome", [Failed(error="boom"), Interrupted(reason="stop"), Released(), Released(SECOND)]
    )
    async def test_one_that_goes_back_after_it_gave_its_key_up_harms_nobody(
        self, store: Store, clock: FakeClock, outcome: Any
    ) -> None:
        await hire(store, "w1")
        first = await put(store, key=RETURN)
        claim = await take_one(store)
        second = await put(store, key=REPLACE)
        assert await finish(store, claim, outcome, now=clock.now(), policy=fixed(5, 1)) == {claim.token}
        assert [found.state for found in await store.get([first, second])] == [State.PENDING] * 2
        assert await put(store, key=RETURN) == second
        clock.advance(5)
        assert {claim.job_id for claim in await take(store)} == {first, second}

    async def test_one_that_is_rescued_after_it_gave_its_key_up_harms_nobody(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "w2")
        first = await put(store, key=RETURN)
        await take_one(store)
        second = await put(store, key=REPLACE)
        await store.bury(["w1"])
        (orphan,) = await rescue(store, "w2")
        await finish(store, orphan.claim, Released(), now=clock.now())
        assert {claim.job_id for claim in await take(store, "w2")} == {first, second}
        assert await put(store, key=RETURN) == second


class TestHoldsPastTheEnd(StoreSuite):
    """`keep` and `period`: a key is held after the job has ended."""

    async def test_a_kept_key_is_held_for_its_time_after_the_end(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        first = await put(store, key=KEPT)
        clock.advance(20)
        await run(store, clock)
        clock.set(clock.now() + 10 * SECOND - 1)
        assert await put(store, key=RETURN) == first
        with pytest.raises(KeyTaken, match="succeeded"):
            await put(store, key=RAISE)
        clock.set(clock.now() + 1)
        assert await put(store, key=RETURN) != first

    async def test_a_throttled_key_is_held_from_the_request_on(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        first = await put(store, key=THROTTLED)
        clock.advance(1)
        await run(store, clock)
        clock.set(clock.now() + 9 * SECOND - 1)
        assert await put(store, key=THROTTLED) == first
        clock.set(clock.now() + 1)
        assert await put(store, key=THROTTLED) != first

    async def test_a_job_that_lives_longer_than_its_period_has_the_key_still(
        self, store: Store, clock: FakeClock
    ) -> None:
        first = await put(store, key=THROTTLED, delay=60 * SECOND)
        clock.advance(30)
        assert await put(store, key=THROTTLED) == first

    async def test_one_that_replaces_is_not_held_up_by_what_has_ended(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        first = await put(store, key=KEPT)
        await run(store, clock)
        second = await put(store, key=replace(REPLACE, keep=KEPT.keep))
        assert second != first
        assert await put(store, key=RETURN) == second

    async def test_a_key_can_be_held_over_and_over(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        ids = set[JobId]()
        for _ in range(4):
            ids.add(await put(store, key=KEPT))
            await run(store, clock)
            clock.advance(10)
        assert len(ids) == 4
