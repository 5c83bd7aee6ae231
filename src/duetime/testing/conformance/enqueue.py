"""Jobs go in whole, once, and come out as they went in."""

from __future__ import annotations

import contextlib
from typing import cast

import pytest

from duetime.errors import KeyTaken, StoreError
from duetime.model.ids import new_job_id
from duetime.model.job import FOREVER, JobTerms, Key
from duetime.model.states import State
from duetime.model.stored.audit import AuditEntry
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import SECOND
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    TASK,
    declare,
    finish,
    hire,
    job,
    occurrence_job,
    put,
    read,
    read_schedule,
    schedule,
    take,
    take_one,
)
from duetime.testing.conformance.suite import MakeStore, StoreSuite

HIDDEN = "|a|return|"
HEADERS = '{"a":"☃"}'
ODD_TEXT = (
    "'\"`\\ %s :name $1 ? {jobs} {{}} -- /* \N{PARTY POPPER} \u202e\u05e8\u05d8\u05dc é\u0301 \t\r\n \x7f"
)


class TestEnqueue(StoreSuite):
    """`enqueue`."""

    async def test_a_job_is_pending_due_now_and_untouched(self, store: Store, clock: FakeClock) -> None:
        job_id = await put(store)
        assert await read(store, job_id) == StoredJob(
            id=job_id,
            task=TASK,
            payload="{}",
            queue="default",
            priority=5,
            state=State.PENDING,
            due_at=clock.now(),
            created_at=clock.now(),
            started_at=None,
            finished_at=None,
            worker=None,
            fence=0,
            failures=0,
            crashes=0,
            blames=0,
            on_crash="retry",
            retries=None,
            timeout=None,
            result=None,
            result_error=None,
            error=None,
            traceback=None,
            reason=None,
            cancel_requested_at=None,
            schedule=None,
            occurrence=None,
            span_first=None,
            span_count=1,
        )

    async def test_everything_that_was_asked_for_is_kept(self, store: Store, clock: FakeClock) -> None:
        asked = job(
            task="report",
            payload='{"day":1}',
            due_at=clock.now() + 1,
            queue="mail",
            priority=0,
            on_crash="fail",
            retries=7,
            timeout=3 * SECOND,
            schedule="nightly",
            occurrence=clock.now() + 2,
        )
        record = await read(store, (await store.enqueue([asked]))[0])
        kept = {name: getattr(record, name) for name in asked._fields if hasattr(record, name)}
        assert kept == {name: getattr(asked, name) for name in kept}

    @pytest.mark.parametrize("count", [1, 3])
    @pytest.mark.parametrize("delay", [0, 9])
    async def test_jobs_of_one_kind_keep_what_they_share_and_what_is_their_own(
        self, store: Store, clock: FakeClock, count: int, delay: int
    ) -> None:
        shared = job(
            task="report", queue="mail", priority=0, on_crash="fail", retries=7, timeout=3, delay=delay
        )
        asked = [shared._replace(id=new_job_id(), payload=f'{{"n":{n}}}') for n in range(count)]
        asked += [shared._replace(id=new_job_id(), due_at=n) for n in range(count - 1)]
        for number, record in enumerate(await store.get(await store.enqueue(asked))):
            wanted = asked[number]
            kept = {name: getattr(record, name) for name in wanted._fields if hasattr(record, name)}
            due_at = clock.now() + delay if wanted.due_at is None else wanted.due_at
            assert kept == {name: getattr(wanted, name) for name in kept} | {"due_at": due_at}

    @pytest.mark.parametrize("due_at", [None, 5])
    async def test_jobs_of_one_kind_may_fall_due_together(
        self, store: Store, clock: FakeClock, due_at: int | None
    ) -> None:
        asked = [job(due_at=due_at, delay=9, payload=text) for text in ("5", '"\\u0000"', ODD_TEXT)]
        records = await store.get(await store.enqueue(asked))
        assert [record.payload for record in records] == [wanted.payload for wanted in asked]
        assert {record.due_at for record in records} == {clock.now() + 9 if due_at is None else due_at}

    async def test_what_no_database_keeps_is_replaced_in_one_job_of_many(self, store: Store) -> None:
        records = await store.get(await store.enqueue([job(payload="a\0b"), job(payload="a"), job()]))
        assert [record.payload for record in records] == ["a\N{REPLACEMENT CHARACTER}b", "a", "{}"]

    async def test_one_job_of_another_kind_takes_nothing_from_the_others(self, store: Store) -> None:
        for other in ({"task": "report"}, {"retries": 3}, {"priority": 1}, {"queue": "mail"}, {"timeout": 5}):
            asked = [job(), job(**other), job()]
            for wanted, record in zip(asked, await store.get(await store.enqueue(asked)), strict=True):
                kept = {name: getattr(record, name) for name in other}
                assert kept == {name: getattr(wanted, name) for name in other}

    @pytest.mark.covers("store-clock")
    async def test_a_delay_counts_from_the_stores_clock(self, store: Store, clock: FakeClock) -> None:
        assert (await read(store, await put(store, delay=7))).due_at == clock.now() + 7

    @pytest.mark.covers("due-in-the-past")
    async def test_a_due_time_in_the_past_is_kept_so_that_lateness_shows(self, store: Store) -> None:
        assert (await read(store, await put(store, due_at=5))).due_at == 5

    async def test_a_batch_comes_back_in_its_order(self, store: Store) -> None:
        jobs = [job(payload=str(number)) for number in range(1_000)]
        jobs.reverse()
        ids = await store.enqueue(jobs)
        assert ids == [asked.id for asked in jobs]
        assert [record.payload for record in await store.get(ids)] == [asked.payload for asked in jobs]

    async def test_an_empty_batch_is_nothing(self, store: Store) -> None:
        assert await store.enqueue([]) == []

    async def test_what_is_noted_of_a_job_is_stored_with_it_or_not_at_all(self, store: Store) -> None:
        key = Key(value="k", if_exists="raise")
        for number in (1, 2):
            entry = AuditEntry(verb="trigger", target=f"s{number}", who="ann")
            with contextlib.nullcontext() if number == 1 else pytest.raises(KeyTaken):
                await store.enqueue([job(key=key)], entries=[entry])
        assert [len(await store.entries(f"s{number}", limit=9)) for number in (1, 2)] == [1, 0]

    async def test_storing_a_job_again_is_harmless(self, store: Store, clock: FakeClock) -> None:
        asked = job()
        await hire(store, "w1")
        await store.enqueue([asked])
        await finish(store, await take_one(store), now=clock.now())
        before = await read(store, asked.id)
        assert await store.enqueue([asked._replace(payload='{"other":1}')]) == [asked.id]
        assert await read(store, asked.id) == before

    async def test_of_many_jobs_those_that_are_stored_stay_and_the_others_are_stored(
        self, store: Store, clock: FakeClock
    ) -> None:
        asked = [job(payload='{"first":1}') for _ in range(4)]
        await hire(store, "w1")
        await store.enqueue(asked[:2])
        await finish(store, await take_one(store, limit=1), now=clock.now())
        before = await store.get([new.id for new in asked[:2]])
        again = [new._replace(payload='{"other":1}') for new in asked]
        assert await store.enqueue(again) == [new.id for new in asked]
        after = await store.get([new.id for new in asked])
        assert after[:2] == before
        assert [record.payload for record in after[2:]] == ['{"other":1}'] * 2

    async def test_the_same_job_twice_in_a_batch_is_stored_once(self, store: Store) -> None:
        asked = job()
        assert await store.enqueue([asked, asked]) == [asked.id, asked.id]
        assert sum((await store.counts()).values()) == 1

    async def test_of_two_jobs_with_one_id_the_first_stands(self, store: Store) -> None:
        asked = job(payload='{"first":1}')
        await store.enqueue([asked, asked._replace(payload='{"other":1}'), job()])
        assert (await read(store, asked.id)).payload == '{"first":1}'

    async def test_one_occurrence_has_one_job_and_later_requests_learn_its_id(self, store: Store) -> None:
        first, second = occurrence_job("s", 5), occurrence_job("s", 5)
        assert await store.enqueue([first]) == [first.id]
        assert (await store.enqueue([job(), second]))[1] == first.id
        assert await store.get([second.id]) == []

    async def test_the_same_instant_of_two_schedules_has_two_jobs(self, store: Store) -> None:
        asked = [occurrence_job("a", 5), occurrence_job("b", 5), job(due_at=5), job(due_at=5)]
        assert len(await store.get(await store.enqueue(asked))) == 4

    @pytest.mark.covers("failed-enqueue")
    async def test_a_batch_with_a_bad_row_leaves_nothing_behind(self, store: Store) -> None:
        good = job()
        with pytest.raises(StoreError):
            await store.enqueue([good, job(state=cast("State", "nonsense"))])
        assert await store.get([good.id]) == []

    async def test_a_skipped_occurrence_has_ended_with_its_reason(
        self, store: Store, clock: FakeClock
    ) -> None:
        skipped = occurrence_job("s", 9, state=State.SKIPPED, reason="misfire", span_first=3, span_count=3)
        record = await read(store, (await store.enqueue([skipped]))[0])
        assert (record.state, record.reason, record.finished_at) == (State.SKIPPED, "misfire", clock.now())
        assert (record.occurrence, record.span_first, record.span_count) == (9, 3, 3)

    async def test_a_skipped_occurrence_is_never_handed_out(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([occurrence_job("s", 9, state=State.SKIPPED, reason="misfire")])
        assert await take(store) == []

    async def test_a_payload_of_256_kilobytes_survives(self, store: Store) -> None:
        payload = '{"x":"' + "é\N{PARTY POPPER}x" * 36_000 + '"}'
        await hire(store, "w1")
        job_id = await put(store, payload=payload)
        assert (await read(store, job_id)).payload == payload
        assert (await take_one(store)).payload == payload

    async def test_odd_text_survives_everywhere(self, store: Store) -> None:
        await hire(store, "w1")
        job_id = await put(
            store, payload=ODD_TEXT, task=ODD_TEXT, queue=ODD_TEXT, schedule=ODD_TEXT, occurrence=1
        )
        claim = await take_one(store, queues=[ODD_TEXT], tasks=(ODD_TEXT,))
        record = await read(store, job_id)
        for seen in (claim, record):
            assert (seen.payload, seen.task, seen.queue, seen.schedule) == (ODD_TEXT,) * 4

    async def test_a_payload_that_is_not_json_is_handed_out_as_it_is(self, store: Store) -> None:
        await hire(store, "w1")
        await put(store, payload="{broken")
        assert (await take_one(store)).payload == "{broken"

    async def test_namespaces_do_not_see_each_other(
        self, store: Store, make_store: MakeStore, clock: FakeClock
    ) -> None:
        elsewhere = await make_store(clock, namespace="elsewhere")
        job_id = await put(store)
        await hire(store, "w1")
        await hire(elsewhere, "w1")
        assert await elsewhere.get([job_id]) == []
        assert await take(elsewhere) == []
        assert len(await take(store)) == 1

    async def test_ids_of_another_store_do_not_collide(self, store: Store, other: Store) -> None:
        ids = [new_job_id() for _ in range(20)]
        await store.enqueue([job(id=job_id) for job_id in ids[:10]])
        await other.enqueue([job(id=job_id) for job_id in ids[10:]])
        assert [record.id for record in await store.get(ids)] == ids

    async def test_what_a_job_carries_is_read_back_and_handed_to_its_worker(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        terms = JobTerms(
            expires=SECOND,
            tags=("a", "b"),
            callbacks="{}",
            result_ttl=0,
            failure_ttl=FOREVER,
            headers=HEADERS,
            secret=HIDDEN,
        )
        job_id = await put(store, terms=terms, key=Key(value="k"), parent="p")
        claim, record = await take_one(store), await read(store, job_id)
        for shown in (claim, record):
            assert (shown.key, shown.tags, shown.parent, shown.callbacks) == ("k", "|a|b|", "p", "{}")
            assert (shown.result_ttl, shown.failure_ttl, shown.gate) == (0, FOREVER, None)
            assert (shown.headers, shown.expires_at) == (HEADERS, clock.now() + SECOND)
        assert record.secret == HIDDEN

    async def test_a_deadline_of_its_own_stands_before_that_of_the_terms(
        self, store: Store, clock: FakeClock
    ) -> None:
        moment = clock.now() + 5 * SECOND
        job_id = await put(store, terms=JobTerms(expires=SECOND), expires_at=moment)
        assert (await read(store, job_id)).expires_at == moment

    async def test_a_job_of_a_schedule_carries_what_the_schedule_says(
        self, store: Store, clock: FakeClock
    ) -> None:
        terms = JobTerms(tags=("nightly",), result_ttl=SECOND).to_text()
        now = clock.now()
        await declare(store, schedule("s", next_at=now, fired_through=now - 1, terms=terms))
        assert (await read_schedule(store, "s")).terms == terms
        assert await declare(store, schedule("s", next_at=now, fired_through=now - 1, terms=terms)) == []
        changed = schedule("s", next_at=now, fired_through=now - 1, terms=None)
        assert await declare(store, changed) == ["s"]
        assert (await read_schedule(store, "s")).terms is None
