"""One call does a bounded piece of work, whatever is stored: while it does, the server serves nobody else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from duetime.errors import InvalidArguments
from duetime.model.job import JobEdit, JobTerms, Key
from duetime.model.limits import Gate
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.stores.base import CancelAnswer, ClaimRequest, DeleteAnswer, EditAnswer, ReleaseAnswer
from duetime.stores.redis import control, enqueue as enqueuing, runs as running, workers as working
from duetime.stores.redis.runs import RedisLimitSurvey, read_survey
from duetime.stores.redis.store import RedisStore
from duetime.testing import FakeClock
from duetime.testing.conformance.kit import (
    TASK,
    declare,
    delete,
    firing,
    hire,
    job,
    occurrence_job,
    pause,
    read_schedule,
    rescue,
    schedule,
    take,
)

pytestmark = pytest.mark.covers("one-call-for-all")

GATED = JobTerms(gate=TASK)
LATER = JobEdit(postpone=SECOND)


class Call(NamedTuple):
    """A call of a verb, and how often it ran each command of the server."""

    verb: str
    commands: dict[str, int]

    def reads(self) -> int:
        """How many rows it has looked at."""
        return self.commands.get("cmdstat_hmget", 0) + self.commands.get("cmdstat_hgetall", 0)


@contextmanager
def counted(
    store: RedisStore, client: Any, *, behind: Callable[[str], Awaitable[object]] | None = None
) -> Iterator[list[Call]]:
    """Count what each call does; something may be done behind each."""
    told: list[Call] = []
    calls: Any = store._calls
    make = calls._call

    async def call(command: str, verb: str, *rest: Any, **told_of: Any) -> bytes:
        await client.config_resetstat()
        answer: bytes = await make(command, verb, *rest, **told_of)
        found = await client.info("commandstats")
        told.append(Call(verb, {name: each["calls"] for name, each in found.items()}))
        if behind is not None:
            calls._call = make
            await behind(verb)
            calls._call = call
        return answer

    calls._call = call
    try:
        yield told
    finally:
        calls._call = make


async def test_a_rescue_takes_over_the_jobs_of_some_workers_at_a_time_and_blames_as_if_at_once(
    store: RedisStore, client: Any, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "_RESCUED_PER_CALL", 3)
    held = {"w1": 2, "w2": 2, "w3": 5, "w4": 1}
    for worker, count in held.items():
        await hire(store, worker)
        await store.enqueue([job() for _ in range(count)])
        assert len(await take(store, worker=worker)) == count
    clock.advance("1h")
    await hire(store, "w9")
    with counted(store, client) as calls:
        orphans = await rescue(store, "w9")
    assert [call.commands.get("cmdstat_hgetall", 0) for call in calls if call.verb == "rescue"] == [
        2,
        2,
        5,
        1,
    ]
    assert sorted(orphan.worker for orphan in orphans) == [
        w for w, count in held.items() for _ in range(count)
    ]
    assert [orphan.worker for orphan in orphans if orphan.blamed] == ["w4"], "it had one job only"


async def test_a_purge_looks_at_some_jobs_at_a_time_wherever_those_of_the_queue_are(
    store: RedisStore, client: Any, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_JOBS_PER_CALL", 10)
    await store.enqueue([job(terms=GATED, queue="other") for _ in range(35)])
    await store.enqueue([job(task=f"task-{n % 3}") for n in range(15)] + [job(terms=GATED) for _ in range(5)])
    before = clock.now()
    clock.advance("1s")
    kept = await store.enqueue([job() for _ in range(15)])
    with counted(store, client) as calls:
        assert await store.purge("default", before=before, reason="off", limit=100) == 20
    looks = [call.reads() for call in calls if call.verb == "purgeable"]
    assert max(looks) <= 10
    assert sum(looks) == 70
    assert {record.state for record in await store.get(kept)} == {State.PENDING}


async def test_a_purge_passes_nobody_over_though_others_take_jobs_meanwhile(
    store: RedisStore, client: Any, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_JOBS_PER_CALL", 3)
    due = clock.now() - SECOND
    ids = await store.enqueue([job(due_at=due + 1) for _ in range(12)])
    before = clock.now()
    clock.advance("1ms")
    kept = sorted(await store.enqueue([job(due_at=due) for _ in range(12)]))
    moved = iter(kept)

    async def move_one(verb: str) -> None:
        if verb == "purgeable":
            await store.edit([next(moved)], LATER)

    with counted(store, client, behind=move_one):
        assert await store.purge("default", before=before, reason="off", limit=100) == 12
    assert {record.state for record in await store.get(ids)} == {State.CANCELLED}


async def test_a_look_at_limits_sees_some_gates_and_jobs_in_all_and_the_next_one_goes_on(
    store: RedisStore, client: Any, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_STEPS_PER_LOOK", 20)
    monkeypatch.setattr(running, "_LATEST_JOBS_PER_LOOK", 1)
    tasks = tuple(f"task-{number}" for number in range(6))
    gates = {task: [f"{task}:{n}" for n in range(10)] for task in tasks}
    await hire(store, "w1")
    due = clock.now() - SECOND
    for task, names in gates.items():
        await store.enqueue(
            [job(task=task, due_at=due, terms=JobTerms(gate=gate)) for gate in names for _ in range(4)]
        )
    closed = dict.fromkeys(tasks, Gate(0, None, 0))
    demand = ClaimRequest(
        worker="w1", claim_id="c", queues=(("default", 3),), limit=3, tasks=tasks, limits=closed
    )
    with counted(store, client) as calls:
        assert (await store.claim_limited(demand)).claims == []
    looks = [call.commands["cmdstat_zrange"] for call in calls if call.verb == "survey"]
    # Each place takes a step, and so does each of the three jobs of it that are told of.
    assert len(looks) >= 60 * (1 + 3) // 20
    assert max(looks) <= 20
    last = replace(demand, limits=closed | {tasks[-1]: Gate(1, None, 0)})
    assert {claim.task for claim in (await store.claim_limited(last)).claims} == {tasks[-1]}


async def test_a_look_at_limits_tells_of_some_jobs_however_many_gates_have_new_ones(
    store: RedisStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_STEPS_PER_LOOK", 20)
    monkeypatch.setattr(running, "_LATEST_JOBS_PER_LOOK", 10)
    told: list[list[str | None]] = []

    def survey(facts: dict[str, Any], demand: ClaimRequest) -> RedisLimitSurvey:
        told.append([limit["gate"] for limit in facts["limits"] for _ in limit["jobs"]])
        return read_survey(facts, demand)

    monkeypatch.setattr(running, "read_survey", survey)
    await hire(store, "w1")
    gates = [f"gate:{n}" for n in range(10)]
    for due in (clock.now() - SECOND, clock.now()):
        await store.enqueue([job(due_at=due, terms=JobTerms(gate=gate)) for gate in gates for _ in range(3)])
    closed = {TASK: Gate(0, None, 0)}
    demand = ClaimRequest(
        worker="w1", claim_id="c", queues=(("default", 5),), limit=5, tasks=(TASK,), limits=closed
    )
    assert (await store.claim_limited(demand)).claims == []
    assert max(map(len, told)) <= 20 + 10
    clock.advance("1s")
    await store.enqueue([job(terms=JobTerms(gate=gate)) for gate in gates])
    assert (await store.claim_limited(demand)).claims == []
    assert set(told[-1]) == set(gates), "those at which a job is new are all told of"


CHANGES: dict[str, Callable[[RedisStore], Awaitable[bool]]] = {
    "delete": lambda store: delete(store, "s"),
    "pause": lambda store: pause(store, "s", reason="test"),
}


@pytest.mark.parametrize("verb", CHANGES)
async def test_what_is_planted_is_withdrawn_past_much_that_is_unfinished_some_at_a_time(
    store: RedisStore, client: Any, clock: FakeClock, verb: str
) -> None:
    now = clock.now()
    await declare(store, schedule("s", next_at=now + 99, fired_through=now))
    waiting = await store.enqueue([occurrence_job("s", now - n) for n in range(2_100)])
    planted = await store.enqueue([occurrence_job("s", now + n) for n in (7, 8)])
    with counted(store, client) as calls:
        assert await CHANGES[verb](store)
    assert max(call.reads() for call in calls) < 1_010
    assert {record.state for record in await store.get(planted)} == {State.CANCELLED}
    assert {record.state for record in await store.get(waiting)} == {State.PENDING}


async def test_what_is_planted_while_others_are_looked_for_is_withdrawn_with_them(
    store: RedisStore, client: Any, clock: FakeClock
) -> None:
    now = clock.now()
    await declare(store, schedule("s", next_at=now + 9, fired_through=now))
    await store.enqueue([occurrence_job("s", now - n) for n in range(1_100)])
    late = firing(await read_schedule(store, "s"), next_at=now + SECOND)

    looks = 0

    async def fire(verb: str) -> None:
        nonlocal looks
        looks += verb == "planted"
        if looks == 2:
            assert await store.fire([late]) == {"s"}, "behind the last look"
            looks += 1

    with counted(store, client, behind=fire):
        assert await delete(store, "s")
    assert (await store.get([late.jobs[0].id]))[0].state is State.CANCELLED


async def test_a_lost_answer_is_looked_up_among_what_the_worker_has(store: RedisStore, client: Any) -> None:
    await hire(store, "w1", "w2")
    await store.enqueue([job() for _ in range(30)])
    assert len(await take(store, "w2")) == 30
    await store.enqueue([job(), job()])
    claims = await take(store, "w1")
    with counted(store, client) as calls:
        assert await store.claims_under("w1", claims[0].claim_id) == claims
    assert [call.reads() for call in calls] == [2 * len(claims)]


async def test_long_lists_of_jobs_are_read_and_changed_in_pieces(
    store: RedisStore, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_JOBS_PER_CALL", 10)
    await hire(store, "w1")
    ids = await store.enqueue([job() for _ in range(25)])
    assert len(await take(store)) == 25
    twice = [*ids, *ids]
    with counted(store, client) as calls:
        assert await store.release(twice, force=True) == dict.fromkeys(ids, ReleaseAnswer.RELEASED)
        assert await store.edit(twice, LATER) == dict.fromkeys(ids, EditAnswer.CHANGED)
        assert await store.cancel(twice, reason="off") == dict.fromkeys(ids, CancelAnswer.CANCELLED)
        assert [record.id for record in await store.get(ids)] == ids
        assert await store.delete(twice) == dict.fromkeys(ids, DeleteAnswer.DELETED)
    assert {call.verb for call in calls} == {"standing", "release", "edit", "cancel", "get", "delete"}
    # A release reads a job when it is taken away, and when that is settled.
    assert max(call.reads() for call in calls if call.verb != "standing") <= 2 * 10


async def test_more_jobs_than_can_be_stored_in_one_go_are_refused_and_none_is_stored(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enqueuing, "MOST_JOBS", 10)
    assert len(await store.enqueue([job() for _ in range(10)])) == 10
    for key in (None, Key(value="k")):
        jobs = [job(key=key) for _ in range(11)]
        with pytest.raises(InvalidArguments, match=r"11 jobs .* enqueue them in several calls"):
            await store.enqueue(jobs)
    assert sum((await store.counts()).values()) == 10
