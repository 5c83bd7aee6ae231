"""What is counted of runs is what is on record of them, on every store."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from hypothesis import Phase, given, settings, strategies as st

from duetime import Cancel, Scheduler, Snooze, current_job, fixed
from duetime.model.statistics import Grain, Kind, Sums, SumsKey, sums_by_start, tally
from duetime.model.task import JobOptionValues
from duetime.runtime.settling.statistics import fold
from duetime.stores.base import JobFilter, Store
from tests.integration.kit import until


class Life(NamedTuple):
    """How a job is to live."""

    way: str
    task: str
    queue: str


WAYS = ("succeeds", "fails", "fails once", "snoozes", "cancels", "expires", "is cancelled")
TASKS, QUEUES = ("mail.send", "mail.send2"), ("default", "other")
lives = st.lists(st.builds(Life, *map(st.sampled_from, (WAYS, TASKS, QUEUES))), min_size=10, max_size=40)
WORDS = {"error": "retried"}


def scheduler_of(url: str, namespace: str) -> Scheduler:
    scheduler = Scheduler(url, namespace=namespace)
    seen: set[str] = set()

    async def live(way: str) -> None:
        job_id = current_job().id
        first = job_id not in seen
        seen.add(job_id)
        if way == "fails" or (way == "fails once" and first):
            raise ValueError(way)
        if way == "snoozes" and first:
            raise Snooze(1)
        if way == "cancels":
            raise Cancel(way)

    for task in TASKS:
        scheduler.task(name=task, retries=fixed(1, 0.01))(live)
    return scheduler


async def enqueue(scheduler: Scheduler, some: Iterable[Life]) -> list[str]:
    """Enqueue jobs; those that are cancelled never come to a worker."""
    ids: list[str] = []
    for way, task, queue in some:
        options: JobOptionValues = {"delay": 3600} if way == "is cancelled" else {}
        # It has expired when it comes to a worker.
        if way == "expires":
            options = {"expires": 0}
        options["queue"] = queue
        job = await scheduler.enqueue_by_name(task, {"way": way}, **options)
        if way == "is cancelled":
            await scheduler.jobs.cancel(job.id)
        ids.append(job.id)
    return ids


async def on_record(store: Store, kind: Kind, name: str) -> Sums:
    """Count what is stored of jobs and their tries."""
    sums = Sums()
    for job in await store.find(JobFilter(limit=10_000)):
        own = {Kind.ALL: "", Kind.TASK: job.task, Kind.QUEUE: job.queue, Kind.SCHEDULE: job.schedule}
        if own[kind] != name:
            continue
        for one in await store.attempts(job.id):
            count(sums, WORDS.get(one.outcome, one.outcome))
            assert one.started_at is not None
            tally(sums.wait, one.started_at - one.due_at)
            tally(sums.run, one.ended_at - one.started_at)
        if job.fence or job.state == "skipped":
            count(sums, job.state.value, job.span_count)
        if job.started_at is not None and job.finished_at is not None:
            tally(sums.wait, job.started_at - job.due_at)
            tally(sums.run, job.finished_at - job.started_at)
            if job.occurrence is not None:
                tally(sums.lateness, job.started_at - job.occurrence)
    return sums


def count(sums: Sums, word: str, times: int = 1) -> None:
    sums.outcomes[word] = sums.outcomes.get(word, 0) + times


async def counted(store: Store, kind: Kind, name: str, grain: Grain) -> Sums:
    """Add up what is read of all times."""
    first, past = (SumsKey(kind.value, grain.value, name, at).id for at in (0, 10**16 - 1))
    sums = Sums()
    for one in sums_by_start(await store.statistics([(first, past)]), kind, grain, name).values():
        sums.plus(one)
    return sums


async def all_ended(store: Store, ids: Sequence[str]) -> bool:
    return all(job.finished_at for job in await store.get(ids))


async def live_through(url: str, some: list[list[Life]]) -> None:
    scheduler = scheduler_of(url, f"life_{secrets.token_hex(4)}")
    async with scheduler:
        for lot in some:
            async with scheduler.worker(queues=QUEUES, lease=3), scheduler.worker(queues=QUEUES):
                ids = await enqueue(scheduler, lot)

                await until(partial(all_ended, scheduler.store, ids), what="all jobs end")
            while await fold(scheduler.store):
                pass
        for kind, names in ((Kind.ALL, [""]), (Kind.TASK, TASKS), (Kind.QUEUE, QUEUES)):
            for name in names:
                expected = await on_record(scheduler.store, kind, name)
                for grain in Grain:
                    assert await counted(scheduler.store, kind, name, grain) == expected, (kind, name, grain)
        await scheduler.store.uninstall()


def test_what_is_counted_is_what_is_on_record(store_url: str) -> None:
    @settings(max_examples=6, deadline=None, database=None, phases=[Phase.generate])
    @given(st.lists(lives, min_size=1, max_size=2))
    def live(some: list[list[Life]]) -> None:
        asyncio.run(live_through(store_url, some))

    live()
