"""Whatever somebody has edited with redis-cli, it keeps nobody else from work."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from duetime.model.job import JobEdit, JobTerms
from duetime.model.limits import Gate
from duetime.model.queues import Registry
from duetime.model.retention import Retention
from duetime.model.states import State
from duetime.model.stored.audit import AuditEntry
from duetime.model.time import SECOND
from duetime.model.worker import WorkerStats
from duetime.stores.base import ClaimRequest, JobFilter, PulseQuery, Store
from duetime.stores.open import open_store
from duetime.testing import FakeClock
from duetime.testing.conformance.callbacks import callback
from duetime.testing.conformance.kit import (
    LEASE,
    TASK,
    declare,
    finish,
    firing,
    hire,
    job,
    occurrence_job,
    read_schedule,
    rescue,
    schedule,
    take,
)
from tests.integration.redis.kit import check
from tools.servers import RedisServer

pytestmark = pytest.mark.covers("unreadable-row")

EDITS = {
    "a word for a number": ("HSET", "line", f"default|high|{TASK}"),
    "no line": ("HDEL", "line"),
    "extras that nobody can read": ("HSET", "extras", "text"),
    "an unknown state": ("HSET", "state", "odd"),
    "something else": ("SET",),
    "nothing": ("DEL",),
}
CALLING = JobTerms(callbacks=json.dumps({"failure": callback("alert")}))
BLANKS = {
    "no due time": ("HDEL", "due_at"),
    "no time of creation": ("HDEL", "created_at"),
    "no arguments": ("HDEL", "payload"),
}
"""What people cannot be shown; to hand it out, less is needed."""


@pytest.fixture(autouse=True)
async def worker(store: Store) -> None:
    await hire(store, "w1")


async def edit(client: Any, job_id: str, how: str) -> None:
    name = f"{{duetime}}:job:{job_id}"
    command, *rest = (EDITS | BLANKS)[how]
    if command == "SET":
        await client.delete(name)
        rest = ["text"]
    await client.execute_command(command, name, *rest)


async def store_three(store: Store, **changes: Any) -> list[str]:
    return await store.enqueue([job(**changes) for _ in range(3)])


@pytest.mark.parametrize("how", EDITS)
async def test_what_stands_before_and_behind_it_is_handed_out(store: Store, client: Any, how: str) -> None:
    first, odd, last = await store_three(store)
    await edit(client, odd, how)
    assert [claim.job_id for claim in await take(store)] == [first, last]
    assert (await check(store, "rows")).detail.startswith("1 job ")


@pytest.mark.parametrize("how", EDITS)
async def test_what_stands_before_and_behind_it_passes_its_gate(store: Store, client: Any, how: str) -> None:
    first, odd, last = await store_three(store, terms=JobTerms(gate=TASK))
    await edit(client, odd, how)
    demand = ClaimRequest(
        worker="w1",
        claim_id="c",
        queues=(("default", 9),),
        limit=9,
        tasks=(TASK,),
        limits={TASK: Gate(9, None, 0)},
    )
    assert [claim.job_id for claim in (await store.claim_limited(demand)).claims] == [first, last]
    assert (await store.claim_limited(demand)).claims == []


@pytest.mark.parametrize("how", EDITS)
async def test_what_stands_before_and_behind_it_is_rescued(
    store: Store, client: Any, clock: FakeClock, how: str
) -> None:
    first, odd, last = await store_three(store)
    assert len(await take(store)) == 3
    await edit(client, odd, how)
    clock.advance("1h")
    await hire(store, "w2")
    assert [orphan.claim.job_id for orphan in await rescue(store, "w2")] == [first, last]
    assert await rescue(store, "w2") == []


@pytest.mark.parametrize("how", EDITS)
async def test_what_stands_before_and_behind_it_is_started_and_looked_up(
    store: Store, client: Any, clock: FakeClock, how: str
) -> None:
    first, odd, last = await store_three(store)
    claims = await take(store, claim_id="lost")
    await edit(client, odd, how)
    await store.mark_started([claim.token for claim in claims], clock.now() + 7)
    assert [record.started_at for record in await store.get([first, last])] == [clock.now() + 7] * 2
    assert [claim.job_id for claim in await store.claims_under("w1", "lost")] == [first, last]


@pytest.mark.parametrize("how", [*EDITS, *BLANKS])
@pytest.mark.parametrize("terms", [JobTerms(), CALLING], ids=["alone", "calls back"])
async def test_what_stands_before_and_behind_it_is_changed_cancelled_and_deleted(
    store: Store, client: Any, how: str, terms: JobTerms
) -> None:
    first, odd, last = ids = await store_three(store, terms=terms)
    await edit(client, odd, how)
    for answers in (await store.edit(ids, JobEdit(postpone=SECOND)), await store.cancel(ids, reason="off")):
        assert answers[odd] == "unknown"
    assert {record.state for record in await store.get([first, last])} == {State.CANCELLED}
    assert await store.delete(ids) == {first: "deleted", odd: "unknown", last: "deleted"}


@pytest.mark.parametrize("how", EDITS)
async def test_what_stands_before_and_behind_it_is_pruned(
    store: Store, client: Any, clock: FakeClock, how: str
) -> None:
    _, odd, _ = await store_three(store)
    for claim in await take(store):
        await finish(store, claim, now=clock.now())
    await edit(client, odd, how)
    clock.advance("30d")
    retention = Retention(before=clock.now() - SECOND)
    assert (await store.prune(retention)).jobs == 2
    assert (await store.prune(retention)).jobs == 0


async def test_text_that_is_no_text_is_handed_out_with_replacements(store: Store, client: Any) -> None:
    first, odd, _ = await store_three(store)
    await client.hset(f"{{duetime}}:job:{odd}", "payload", b"a\xff")
    await client.hset(f"{{duetime}}:job:{first}", "extras", '{"retries": 1.5}')
    claims = await take(store)
    assert [claim.payload for claim in claims] == ["{}", "a\N{REPLACEMENT CHARACTER}", "{}"]
    assert await store.claims_under("w1", claims[0].claim_id) == claims
    assert [record.payload for record in await store.get([odd])] == ["a\N{REPLACEMENT CHARACTER}"]


async def test_a_number_of_another_kind_is_rescued_to_be_ended(
    store: Store, client: Any, clock: FakeClock
) -> None:
    ids = await store_three(store)
    await take(store)
    await client.hset(f"{{duetime}}:job:{ids[1]}", "extras", '{"retries": 1.5}')
    clock.advance("1h")
    await hire(store, "w2")
    assert [orphan.claim.problem for orphan in await rescue(store, "w2")] == [
        None,
        "its row cannot be read: retries is 1.5",
        None,
    ]


async def test_a_lone_job_that_one_index_cannot_list_is_handed_out_all_the_same(
    store: Store, client: Any
) -> None:
    await client.set("{duetime}:jobs", "text")
    new = job()
    with pytest.raises(Exception, match="WRONGTYPE"):
        await store.enqueue([new])
    assert [claim.job_id for claim in await take(store)] == [new.id]
    assert await client.zscore("{duetime}:live", new.id) == 0


async def test_an_index_that_is_something_else_is_told_of_and_no_change_for_it_lands_in_another_namespace(
    store: Store, redis: RedisServer, client: Any
) -> None:
    await client.set("{duetime}:held:w1", "text")
    await store.enqueue([job()])
    with pytest.raises(Exception, match="WRONGTYPE"):
        await take(store)
    assert not await client.exists("{duetime}:lines"), "the other indexes are written all the same"
    other = open_store(redis.url(), namespace="other")
    await other.open()
    await other.enqueue([job()])
    await other.close()
    listed = [name.decode() async for name in client.scan_iter("{other}:*")]
    assert not [name for name in listed if "held" in name]


@pytest.mark.parametrize("how", EDITS)
async def test_the_next_job_of_a_schedule_is_stored_though_one_before_was_edited(
    store: Store, client: Any, clock: FakeClock, how: str
) -> None:
    now = clock.now()
    await declare(store, schedule("s", next_at=now, fired_through=now - 9))
    (odd, other) = await store.enqueue([occurrence_job("s", now - 8), occurrence_job("s", now - 7)])
    await edit(client, odd, how)
    plan = firing(await read_schedule(store, "s"), next_at=now + SECOND, cancels=True)
    assert await store.fire([plan]) == {"s"}
    assert [record.state for record in await store.get([other, plan.jobs[0].id])] == [
        State.CANCELLED,
        State.PENDING,
    ]
    assert (await check(store, "rows")).detail.startswith("1 job ")


@pytest.mark.parametrize("how", EDITS)
async def test_a_schedule_is_deleted_with_what_is_planted_though_one_of_it_was_edited(
    store: Store, client: Any, clock: FakeClock, how: str
) -> None:
    now = clock.now()
    await declare(store, schedule("s", next_at=now, fired_through=now - 9))
    (odd, other) = await store.enqueue([occurrence_job("s", now + 8), occurrence_job("s", now + 9)])
    await edit(client, odd, how)
    entry = AuditEntry(verb="delete", target="s", who="ann")
    assert await store.delete_schedule("s", entry)
    assert (await store.get([other]))[0].state is State.CANCELLED
    assert [noted.id for noted in await store.entries("s", limit=1)] == [entry.id]
    assert await store.schedules() == []


async def test_a_schedule_that_is_something_else_hides_no_other(
    store: Store, client: Any, clock: FakeClock
) -> None:
    now = clock.now()
    for name in ("odd", "sound"):
        await declare(store, schedule(name, next_at=now, fired_through=now - 9))
    await client.delete("{duetime}:schedule:odd")
    await client.set("{duetime}:schedule:odd", "text")
    assert [one.name for one in await store.schedules()] == ["sound"]
    assert [one.name for one in await store.get_schedules(["odd", "sound"])] == ["sound"]
    assert [one.name for one in await store.code_schedules()] == ["sound"]
    due = await store.due_schedules(ahead=0, limit=9)
    assert [one.name for one in due.schedules] == ["sound"]
    plan = firing(await read_schedule(store, "sound"), next_at=now + SECOND)
    assert await store.fire([plan]) == {"sound"}


async def test_what_has_ended_or_runs_is_handed_out_by_no_line_that_lists_it(
    store: Store, client: Any, clock: FakeClock
) -> None:
    ids = await store_three(store)
    first, *_ = claims = await take(store)
    assert await finish(store, first, now=clock.now()) == {first.token}
    await client.zadd(f"{{duetime}}:claim:default|5|{TASK}", dict.fromkeys(ids, 1))
    await client.zadd("{duetime}:lines", {f"default|5|{TASK}": 0})
    assert await take(store) == []
    assert not await client.exists(f"{{duetime}}:claim:default|5|{TASK}")
    assert await finish(store, claims[1], now=clock.now()) == {claims[1].token}


async def test_what_has_ended_is_rescued_by_no_list_of_a_dead_worker_that_has_it(
    store: Store, client: Any, clock: FakeClock
) -> None:
    first, *_ = await store_three(store)
    for claim in await take(store):
        await finish(store, claim, now=clock.now())
    await client.sadd("{duetime}:held:w0", first)
    await client.zadd("{duetime}:holders", {"w0": 0})
    assert await rescue(store, "w1") == []
    assert not (
        await store.pulse("w1", WorkerStats(), lease=LEASE, wants=PulseQuery(orphans=True))
    ).sight.orphans  # type: ignore[union-attr]


@pytest.mark.parametrize("how", [*EDITS, *BLANKS])
async def test_people_are_shown_all_others(store: Store, client: Any, clock: FakeClock, how: str) -> None:
    first, odd, last = await store_three(store)
    await edit(client, odd, how)
    page = JobFilter(limit=9)
    for where in (
        page,
        replace(page, states=frozenset({State.PENDING})),
        replace(page, registry=Registry.QUEUED),
        replace(page, since=clock.now() - SECOND),
    ):
        assert {record.id for record in await store.find(where)} == {first, last}
    assert {record.id for record in await store.upcoming(9)} == {first, last}
    assert [record.id for record in await store.get([first, odd, last])] == [first, last]
    assert (await store.counts())["default", State.PENDING] in {2, 3}
    assert (await store.census(most=9)).tallies
    assert await store.cancel([first, last], reason="off")


@pytest.mark.parametrize("how", [*EDITS, *BLANKS])
async def test_a_schedule_tells_how_it_fares_though_its_last_run_was_edited(
    store: Store, client: Any, clock: FakeClock, how: str
) -> None:
    by_hand, odd = await store.enqueue([job(schedule="s"), occurrence_job("s", clock.now())])
    for claim in await take(store):
        await finish(store, claim, now=clock.now())
    await edit(client, odd, how)
    found = (await store.runs(["s"], most=9))["s"]
    assert found.last is not None
    assert found.last.id in {by_hand, odd}
    assert found.succeeded == 2


@pytest.mark.parametrize("how", EDITS)
async def test_a_job_that_was_mended_is_handed_out_after_a_while(
    store: Store, client: Any, clock: FakeClock, how: str
) -> None:
    (job_id,) = await store.enqueue([job(terms=JobTerms(tags=("a",)))])
    name = f"{{duetime}}:job:{job_id}"
    whole = await client.hgetall(name)
    await edit(client, job_id, how)
    assert await take(store) == []
    await client.delete(name)
    await client.hset(name, mapping=whole)
    assert await rescue(store, "w1") == []
    assert await take(store) == [], "it is not looked at all the time"
    clock.advance("1min")
    await hire(store, "w1")
    pulse = await store.pulse("w1", WorkerStats(), lease=LEASE, wants=PulseQuery(orphans=True))
    assert pulse.sight is not None
    assert pulse.sight.orphans, "a heartbeat tells that there is something to do"
    await rescue(store, "w1")
    assert [claim.job_id for claim in await take(store)] == [job_id]
    assert (await check(store, "rows")).ok


async def test_a_job_that_was_not_mended_stays_aside(store: Store, client: Any, clock: FakeClock) -> None:
    _, odd, _ = await store_three(store)
    await edit(client, odd, "an unknown state")
    await take(store)
    for _ in range(2):
        clock.advance("1min")
        await rescue(store, "w1")
        found = await check(store, "rows")
        assert not found.ok
        assert f"HGETALL {{duetime}}:job:{odd}" in (found.fix or "")


async def test_a_job_that_was_deleted_by_hand_is_forgotten(
    store: Store, client: Any, clock: FakeClock
) -> None:
    _, odd, _ = await store_three(store)
    await edit(client, odd, "nothing")
    await take(store)
    clock.advance("1min")
    await rescue(store, "w1")
    assert (await check(store, "rows")).ok
    for name in ("jobs", "live"):
        assert await client.zscore(f"{{duetime}}:{name}", odd) is None


async def test_a_job_that_is_removed_is_no_longer_aside(store: Store, client: Any, clock: FakeClock) -> None:
    (first, *_) = await store_three(store)
    for claim in await take(store):
        await finish(store, claim, now=clock.now())
    await client.zadd("{duetime}:aside", {first: clock.now()})
    clock.advance("30d")
    assert (await store.prune(Retention(before=clock.now() - SECOND))).jobs == 3
    assert (await check(store, "rows")).ok
