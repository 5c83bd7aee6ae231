"""A store with something of everything in it, as work over days leaves it behind: a story to be moved elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from duetime.model.ids import new_job_id
from duetime.model.job import Claim, JobEdit, JobTerms, Key, NewJob
from duetime.model.limits import Gate, gate_name
from duetime.model.outcome import Failed, Outcome, Succeeded
from duetime.model.reports import NewLogPart, Progress
from duetime.model.retry import fixed
from duetime.model.schedule.record import Firing, StoredSchedule
from duetime.model.states import State
from duetime.model.statistics import PART, StatisticsRow
from duetime.model.stored.audit import AuditEntry
from duetime.model.time import DAY, MINUTE, SECOND
from duetime.model.worker import CommandKind, NewCommand
from duetime.stores.base import ClaimRequest, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    LEASE,
    TASK,
    alter,
    declare,
    hire,
    job,
    occurrence_job,
    pause,
    schedule,
    settlement,
    take,
)

ODD = 'ünï ☃ 😀 "quoted" \\ | {} \n'
RATE = Gate(most=2, count=2, period=MINUTE)
BATCH = 1_000


async def tell(store: Store, clock: FakeClock, *, jobs: int = 40, schedules: int = 4) -> None:
    """Fill an empty store with so many jobs and schedules; of its workers, one has stopped and one died at work."""
    await hire(store, "stopped", "dead")
    await _commands(store)
    await _schedules(store, clock, schedules)
    await _jobs(store, clock, jobs - 2 * schedules - 1)
    await _limits(store)
    await _statistics(store, clock)
    await store.retire("stopped")
    clock.advance(2 * LEASE // SECOND)


async def _commands(store: Store) -> None:
    """Tell a worker two things, one of which it does not come to answer."""
    told = [
        NewCommand(id=new_job_id(), worker="stopped", kind=CommandKind.STACKS, reason=ODD),
        NewCommand(id=new_job_id(), worker="stopped", kind=CommandKind.STOP_JOB, job="j"),
    ]
    await store.send(told)
    await store.take_commands("stopped")
    await store.finish_command(told[0].id, ODD)


async def _schedules(store: Store, clock: FakeClock, count: int) -> None:
    """Declare schedules, fire each once behind a stretch that was skipped, and pause two."""
    now = clock.now()
    names = [f"{n:05} ü" for n in range(count)]
    terms = JobTerms(tags=("a", "b"), expires=DAY).to_text()
    await declare(
        store,
        *(schedule(name, next_at=now, fired_through=now - 1, terms=terms, pause_after=3) for name in names),
    )
    for some in _batches(await store.schedules()):
        await store.fire([_firing(record) for record in some])
    for name in names[:1]:
        await pause(store, name, reason=ODD)
    for name in names[1:2]:
        await alter(store, name, paused_at=now, paused_by=ODD, paused_until=now + DAY)


def _firing(record: StoredSchedule) -> Firing:
    at = record.next_at or 0
    missed = occurrence_job(
        record.name, at - MINUTE, state=State.SKIPPED, reason="missed", span_first=at - DAY, span_count=9
    )
    return Firing(
        name=record.name,
        rev=record.rev,
        expected=record.fired_through,
        fired_through=at,
        next_at=at + MINUTE,
        jobs=(missed, occurrence_job(record.name, at, queue="fails")),
    )


async def _jobs(store: Store, clock: FakeClock, count: int) -> None:
    """Store jobs of every kind and let some of them run; most of them wait."""
    share = max(1, count // 10)
    rich = JobTerms(
        tags=("x", "y"),
        callbacks='[{"task":"after"}]',
        expires=DAY,
        result_ttl=DAY,
        failure_ttl=-1,
        secret="|x|",
        headers='{"ü":"☃"}',
    )
    gate = JobTerms(gate=gate_name(TASK, "key", "1"))
    asked = [
        *_kind(share, queue="works", payload='{"text":"☃"}', key=Key(value="k", keep=DAY)),
        *_kind(share, queue="works", terms=rich, parent="p", priority=2, timeout=SECOND, retries=3),
        *_kind(share, queue="fails", on_crash="fail", key=Key(value="f", period=DAY)),
        *_kind(share, queue="held", terms=rich),
        *_kind(share, queue="mail"),
        *_kind(share, queue="cancelled"),
        *_kind(share, terms=gate),
        *_kind(count - 7 * share, delay=DAY, key=Key(value=ODD)),
    ]
    for some in _batches(asked):
        await store.enqueue(some)
    await _settle(store, clock, await _all(store, "works"), Succeeded(result='{"n":[1,2.5,null]}'))
    failed = Failed(error=ODD, traceback="Traceback\n  here", error_type="a.B", place="a:b")
    await _settle(store, clock, await _all(store, "fails"), failed, retry=True)
    clock.advance(10)
    await _settle(store, clock, await _all(store, "fails"), failed)
    await _run_on(store, await _all(store, "held", worker="dead"))
    waiting = [new.id for new in asked if new.queue == "cancelled"]
    await store.cancel(waiting, reason=ODD)
    await store.edit([asked[-1].id], JobEdit(postpone=SECOND))


async def _settle(
    store: Store, clock: FakeClock, claims: list[Claim], outcome: Outcome, *, retry: bool = False
) -> None:
    """End runs that have logged something."""
    policy: dict[str, Any] = {"policy": fixed(1, 1)} if retry else {}
    for some in _batches(claims):
        await store.report([], [NewLogPart(claim.token, claim.attempt, 1, ODD) for claim in some])
        await store.settle([settlement(claim, outcome, now=clock.now(), **policy) for claim in some])


async def _run_on(store: Store, claims: list[Claim]) -> None:
    """Leave jobs running that have said how far they are, one of them to be cancelled."""
    for some in _batches(claims):
        await store.report([Progress(claim.token, 0.3, ODD) for claim in some], [])
    await store.cancel([claims[0].job_id], reason=ODD)


async def _limits(store: Store) -> None:
    """Pause and limit queues, let some jobs through their limits, and note what somebody did."""
    await store.pause_queue("paused", reason=ODD)
    await store.pause_queue("Ü", reason=None)
    await store.set_queue_limit("mail", Gate(most=9, count=2, period=DAY))
    demand = ClaimRequest(
        worker="dead",
        claim_id=new_job_id(),
        queues=(("mail", 2), ("default", 9)),
        limit=9,
        tasks=(TASK,),
        limits={TASK: RATE},
    )
    await store.claim_limited(demand)
    entry = AuditEntry(verb="trigger", target="00000 ü", who=ODD, detail={"ü": [1, None]})
    await store.enqueue([job(queue="works")], entries=[entry])


async def _statistics(store: Store, clock: FakeClock) -> None:
    """Leave a part that was merged, one that was not, and a row."""
    parts = [StatisticsRow(f"part|{n}", "part", PART, "dead", clock.now() + n, "[]") for n in range(2)]
    await store.add_statistics(parts)
    row = StatisticsRow(f"task|d|{ODD}|0", "task", "d", ODD, 0, '[{"succeeded":1},{},{},{}]')
    await store.fold_statistics(0, ["part|0"], [row])


async def _all(store: Store, queue: str, *, worker: str = "stopped") -> list[Claim]:
    claims: list[Claim] = []
    while found := await take(store, worker, queues=((queue, BATCH),), limit=BATCH):
        claims += found
    return claims


def _kind(count: int, *, key: Key | None = None, **changes: Any) -> list[NewJob]:
    """So many jobs that are alike, but for their keys."""
    return [
        job(**changes, key=key and replace(key, value=f"{key.value}{changes.get('queue')}{n}"))
        for n in range(count)
    ]


def _batches(values: Iterable[Any]) -> list[list[Any]]:
    listed = list(values)
    return [listed[first : first + BATCH] for first in range(0, len(listed), BATCH)]
