"""Everything a store has can be read whole, stored whole elsewhere, and goes on there as if nothing had happened."""

from __future__ import annotations

from dataclasses import replace

import pytest
import pytest_asyncio

from duetime.errors import StoreMoved
from duetime.model.job import Key, Token
from duetime.model.limits import Gate
from duetime.model.outcome import Failed
from duetime.model.retry import fixed
from duetime.model.states import State
from duetime.model.stored.copy import COLUMNS, LAST_KEY, PART_COLUMNS, RecordKind, WholeRecord
from duetime.model.time import DAY, MINUTE
from duetime.stores.base import JobFilter, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    LEASE,
    TASK,
    declare,
    finish,
    firing,
    hire,
    job,
    put,
    read,
    read_schedule,
    rescue,
    schedule,
    take,
    take_one,
)
from duetime.testing.conformance.limits import gated, pass_all
from duetime.testing.conformance.story import tell
from duetime.testing.conformance.suite import MakeStore, StoreSuite

MANY = 10_000


async def all_of(store: Store, kind: RecordKind) -> list[WholeRecord]:
    """Every record of a kind."""
    return await store.stretch(kind, after="", until=LAST_KEY, limit=MANY)


async def move(store: Store, elsewhere: Store) -> None:
    """Store everything elsewhere."""
    for kind in RecordKind:
        await elsewhere.exchange(kind, [], await all_of(store, kind))


async def seen(store: Store) -> dict[str, object]:
    """What people can see of a store."""
    jobs = await store.find(JobFilter(limit=MANY))
    schedules = await store.schedules()
    workers = await store.workers()
    census = await store.census(most=MANY)  # Its tallies come in any order.
    return {
        "jobs": jobs,
        "attempts": [await store.attempts(found.id) for found in jobs],
        "logs": [await store.logs(found.id) for found in jobs],
        "schedules": schedules,
        "entries": [await store.entries(found.name, limit=MANY) for found in schedules],
        "occurrences": [
            await store.occurrences(found.name, since=0, until=found.fired_through + DAY, limit=MANY)
            for found in schedules
        ],
        "workers": workers,
        "commands": [await store.commands_of(worker.id, limit=MANY) for worker in workers],
        "queues": await store.queues(),
        "outlooks": [await store.outlook(found.queue, gate=found.gate) for found in jobs],
        "statistics": await store.statistics([("task|", "task}")]),
        "counts": await store.counts(),
        "census": census._replace(tallies=sorted(census.tallies, key=repr)),
        "upcoming": await store.upcoming(MANY),
        "due": await store.next_due(["default"], [TASK]),
    }


class TestStretches(StoreSuite):
    """`stretch`: whole records."""

    async def test_an_empty_store_has_none(self, store: Store) -> None:
        assert [await all_of(store, kind) for kind in RecordKind] == [[]] * len(RecordKind)

    async def test_records_have_the_columns_of_their_kind_and_the_key_in_front(
        self, store: Store, clock: FakeClock
    ) -> None:
        await tell(store, clock)
        for kind in RecordKind:
            records = await all_of(store, kind)
            assert records, kind
            assert {len(record.row) for record in records} == {len(COLUMNS[kind])}, kind
            for place, columns in enumerate(PART_COLUMNS.get(kind, ())):
                parts = [(record.key, part) for record in records for part in record.parts[place]]
                assert parts, columns
                assert all(len(part) == len(columns) and part[0] == key for key, part in parts)

    async def test_they_come_by_key_behind_one_and_up_to_another(self, store: Store) -> None:
        stored = sorted(await store.enqueue([job() for _ in range(5)]))

        async def keys(after: str, until: str, limit: int = MANY) -> list[str]:
            found = await store.stretch(RecordKind.JOBS, after=after, until=until, limit=limit)
            return [record.key for record in found]

        assert await keys("", LAST_KEY) == stored
        assert await keys("", LAST_KEY, 2) == stored[:2]
        assert await keys(stored[1], LAST_KEY, 2) == stored[2:4]
        assert await keys(stored[0], stored[3]) == stored[1:4]
        assert await keys(stored[4], LAST_KEY) == []

    async def test_keys_are_in_the_order_of_their_code_points(self, store: Store) -> None:
        names = ["B", "a", "b", "ä", "\ufffd", "😀"]
        for name in reversed(names):
            await store.pause_queue(name, reason=None)
        await declare(store, *(schedule(name, next_at=None, fired_through=0) for name in reversed(names)))
        for kind in (RecordKind.QUEUES, RecordKind.SCHEDULES):
            assert [record.key for record in await all_of(store, kind)] == names
            (last,) = await store.stretch(kind, after=names[-2], until=LAST_KEY, limit=MANY)
            assert last.key == names[-1]

    async def test_each_is_the_same_in_whichever_stretch_it_comes_parts_and_all(
        self, store: Store, clock: FakeClock
    ) -> None:
        await tell(store, clock)
        for kind in RecordKind:
            whole = await all_of(store, kind)
            for place, record in enumerate(whole):
                before = whole[place - 1].key if place else ""
                alone = await store.stretch(kind, after=before, until=record.key, limit=MANY)
                first = await store.stretch(kind, after=before, until=LAST_KEY, limit=1)
                assert alone == first == [record], kind


class Moves(StoreSuite):
    """The base of those groups that need two stores."""

    @pytest_asyncio.fixture
    async def elsewhere(self, make_store: MakeStore, clock: FakeClock, store: Store) -> Store:  # noqa: ARG002 - opened second
        """Another store, empty."""
        return await make_store(clock, namespace="elsewhere")


class TestExchange(Moves):
    """`exchange`: whole records, stored as they are."""

    @pytest.mark.covers("copy-keeps-everything")
    async def test_all_that_people_can_see_is_the_same_elsewhere(
        self, store: Store, clock: FakeClock, elsewhere: Store
    ) -> None:
        await tell(store, clock)
        await move(store, elsewhere)
        expected, found = await seen(store), await seen(elsewhere)
        for name, value in expected.items():
            assert found[name] == value, name
        for kind in RecordKind:
            assert await all_of(elsewhere, kind) == await all_of(store, kind), kind

    async def test_what_is_there_stays_however_often_it_is_stored(
        self, store: Store, clock: FakeClock, elsewhere: Store
    ) -> None:
        await tell(store, clock)
        await move(store, elsewhere)
        before = await seen(elsewhere)
        await move(store, elsewhere)
        assert await seen(elsewhere) == before

    @pytest.mark.covers("copy-interrupted")
    async def test_what_is_to_go_goes_with_its_parts_and_makes_room(
        self, store: Store, clock: FakeClock, elsewhere: Store
    ) -> None:
        await tell(store, clock)
        await move(store, elsewhere)
        for kind in RecordKind:
            records = await all_of(elsewhere, kind)
            bare = [WholeRecord(record.row, tuple(() for _ in record.parts)) for record in records]
            await elsewhere.exchange(kind, [record.key for record in records], bare)
            assert await all_of(elsewhere, kind) == bare, kind
            await elsewhere.exchange(kind, [record.key for record in records], [])
            assert await all_of(elsewhere, kind) == [], kind
        assert await elsewhere.census(most=MANY) == await elsewhere.census(most=1)
        await move(store, elsewhere)
        assert await seen(elsewhere) == await seen(store)

    async def test_nothing_to_do_is_harmless(self, store: Store) -> None:
        for kind in RecordKind:
            await store.exchange(kind, [], [])
            await store.exchange(kind, ["unknown"], [])


class TestMovedOn(Moves):
    """What was stored elsewhere goes on there."""

    @pytest.mark.covers("copy-keeps-everything")
    async def test_a_job_is_claimed_under_the_next_fence_and_its_old_claims_are_lost(
        self, store: Store, clock: FakeClock, elsewhere: Store
    ) -> None:
        await hire(store, "w1")
        job_id = await put(store)
        before = await take_one(store)
        await finish(store, before, Failed(error="boom"), now=clock.now(), policy=fixed(1, 1))
        await move(store, elsewhere)
        clock.advance(1)
        await hire(elsewhere, "w2")
        claim = await take_one(elsewhere, "w2")
        assert (claim.job_id, claim.fence, claim.failures) == (job_id, 2, 1)
        assert await finish(elsewhere, before, now=clock.now()) == frozenset()
        assert await finish(elsewhere, claim, now=clock.now()) == {Token(job_id, 2, claim.claim_id)}

    async def test_jobs_of_a_worker_that_died_are_rescued(
        self, store: Store, clock: FakeClock, elsewhere: Store
    ) -> None:
        await hire(store, "dead")
        job_id = await put(store)
        await take_one(store, "dead")
        clock.advance(2 * LEASE // 1_000_000)
        await move(store, elsewhere)
        await hire(elsewhere, "w2")
        (orphan,) = await rescue(elsewhere, "w2")
        assert (orphan.claim.job_id, orphan.claim.fence, orphan.worker) == (job_id, 2, "dead")
        assert (await read(elsewhere, job_id)).state is State.RUNNING

    async def test_a_key_is_still_held_by_its_job(
        self, store: Store, clock: FakeClock, elsewhere: Store
    ) -> None:
        await hire(store, "w1")
        waits = await put(store, key=Key(value="waits"), queue="later")
        kept = await put(store, key=Key(value="kept", keep=MINUTE))
        await finish(store, await take_one(store), now=clock.now())
        await move(store, elsewhere)
        assert await put(elsewhere, key=Key(value="waits")) == waits
        assert await put(elsewhere, key=Key(value="kept")) == kept
        clock.advance(61)
        assert await put(elsewhere, key=Key(value="kept")) != kept

    async def test_limits_count_what_started_before(
        self, store: Store, clock: FakeClock, elsewhere: Store
    ) -> None:
        rule = Gate(count=1, period=MINUTE)
        await hire(store, "w1")
        await store.enqueue([gated(), gated()])
        await store.set_queue_limit("mail", rule)
        await store.enqueue([job(queue="mail"), job(queue="mail")])
        queues = (("default", 9), ("mail", 9))
        claims = await pass_all(store, rule=rule, queues=queues)
        assert sorted(claim.queue for claim in claims) == ["default", "mail"]
        for claim in claims:
            await finish(store, claim, now=clock.now())
        await move(store, elsewhere)
        await hire(elsewhere, "w2")
        assert await pass_all(elsewhere, "w2", rule=rule, queues=queues) == []
        clock.advance(60)
        assert len(await pass_all(elsewhere, "w2", rule=rule, queues=queues)) == 2

    async def test_a_schedule_fires_on_from_where_it_was(
        self, store: Store, clock: FakeClock, elsewhere: Store
    ) -> None:
        now = clock.now()
        await declare(store, schedule("s", next_at=now, fired_through=now - 1))
        first = await read_schedule(store, "s")
        await store.fire([firing(first, next_at=now + MINUTE)])
        await move(store, elsewhere)
        clock.advance(60)
        assert await elsewhere.fire([firing(first, next_at=now + MINUTE)]) == frozenset(), "fired before"
        (due,) = (await elsewhere.due_schedules(ahead=0, limit=9)).schedules
        assert due.made == 1
        assert await elsewhere.fire([firing(due, next_at=now + 2 * MINUTE)]) == {"s"}
        await hire(elsewhere, "w2")
        assert [claim.occurrence for claim in await take(elsewhere, "w2")] == [now, now + MINUTE]


class TestMovedAway(StoreSuite):
    """`set_moved`: a store whose work goes on elsewhere."""

    @pytest_asyncio.fixture
    async def left(self, make_store: MakeStore, clock: FakeClock) -> tuple[Store, Store]:
        """A store of its own, for what is noted outlives a test that fails; opened twice."""
        return await make_store(clock, namespace="left"), await make_store(clock, namespace="left")

    @pytest.mark.covers("copy-source-runs-on")
    async def test_no_worker_is_registered_until_the_work_is_here_again(
        self, left: tuple[Store, Store]
    ) -> None:
        store, other = left
        await store.set_moved("a was copied to b")
        await store.set_moved("a was copied to c")
        with pytest.raises(
            StoreMoved, match=r"a was copied to c, and the work goes on there; .*`duetime reopen`"
        ):
            await hire(other, "w1")
        assert await store.workers() == []
        await other.set_moved(None)
        await hire(store, "w1")
        assert [worker.id for worker in await store.workers()] == ["w1"]

    async def test_it_is_told_where_tables_are_looked_at_and_changes_nothing_else(
        self, left: tuple[Store, Store], make_store: MakeStore, clock: FakeClock
    ) -> None:
        store, other = left
        before, name = await store.schema_status(), await store.identity()
        assert (before.moved, store.moved) == (None, None)
        await store.set_moved("moved 'away'")
        assert await other.schema_status() == replace(before, moved="moved 'away'")
        assert (await other.migrate()).moved == "moved 'away'"
        again = await make_store(clock, namespace="left")
        assert [each.moved for each in (store, other, again)] == ["moved 'away'"] * 3
        assert await again.identity() == name
        assert [await all_of(store, kind) for kind in RecordKind] == [[]] * len(RecordKind)
        await store.set_moved(None)
        assert await other.schema_status() == before
