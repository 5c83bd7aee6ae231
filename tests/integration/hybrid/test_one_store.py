"""What lives in several stores is read, counted and changed as if it were in one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duetime import Scheduler, every
from duetime.errors import ConfigError, InvalidOption, JobNotFound
from duetime.model.states import State
from duetime.stores.base import CancelAnswer
from tests.integration.hybrid.kit import Split, task_of, until

NEAR, FAR = [0], [1]
PAST, FUTURE = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
HALVES = pytest.mark.parametrize("half", ["near", "far"])


async def mixed(split: Split, count: int) -> list[str]:
    """Enqueue jobs near and far by turns, and return their ids."""
    return [(await task_of(split, "far" if n % 2 else "near").enqueue(str(n))).id for n in range(count)]


async def test_a_job_lives_in_one_store(split: Split) -> None:
    async with split.scheduler:
        ids = await mixed(split, 4)
        assert await split.places(ids) == [NEAR, FAR, NEAR, FAR]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({}, NEAR),
        ({"delay": "1h"}, NEAR),
        ({"delay": "61m"}, FAR),
        ({"at": PAST}, NEAR),
        ({"at": FUTURE}, FAR),
        ({"key": "k"}, FAR),
        ({"tags": ["a"], "priority": 0, "expires": "5m"}, NEAR),
    ],
    ids=str,
)
async def test_where_it_lives_is_decided_by_its_delay_and_by_what_it_needs(
    split: Split, options: dict[str, Any], place: list[int]
) -> None:
    async with split.scheduler:
        job = await split.near.options(**options).enqueue("x")
        assert await split.places([job.id]) == [place]


async def test_jobs_with_limits_and_of_schedules_live_far(split: Split) -> None:
    async with split.scheduler:
        limited = await split.limited.enqueue()
        await split.scheduler.schedules.put("often", every("1h"), split.near, args=("s",))
        triggered = await split.scheduler.schedules.trigger("often")
        assert await split.places([limited.id, triggered.id]) == [FAR, FAR]


async def test_what_is_enqueued_together_lives_together(split: Split) -> None:
    async with split.scheduler:
        handles = await split.scheduler.enqueue_many([split.near.call("a"), split.far.call("b")])
        assert await split.places([handle.id for handle in handles]) == [FAR, FAR]
        handles = await split.scheduler.enqueue_many([split.near.call("a"), split.near.call("b")])
        assert await split.places([handle.id for handle in handles]) == [NEAR, NEAR]


async def test_a_call_that_is_made_again_goes_where_it_went_before(split: Split) -> None:
    async with split.scheduler:
        together, alone = split.near.call("a"), split.far.call("b")
        await split.scheduler.enqueue_many([together, alone])
        again = await split.scheduler.enqueue(together)
        assert again.id == together.job.id
        assert await split.places([again.id]) == [FAR]
        assert sum((await split.scheduler.queues.counts()).values()) == 2


async def test_pages_of_a_list_follow_one_another_through_both_stores(split: Split) -> None:
    async with split.scheduler:
        ids = await mixed(split, 7)
        seen, cursor = list[str](), None
        while True:
            page = await split.scheduler.jobs.list(limit=2, cursor=cursor)
            seen += [record.id for record in page]
            if (cursor := page.cursor) is None:
                break
        assert seen == ids[::-1], "newest first, none twice and none left out"


async def test_what_falls_due_first_comes_first_wherever_it_is(split: Split) -> None:
    async with split.scheduler:
        delays = [40, 10, 30, 20]
        jobs = [
            await task_of(split, "far" if n % 2 else "near").options(delay=delay).enqueue(str(delay))
            for n, delay in enumerate(delays)
        ]
        coming = await split.scheduler.jobs.upcoming(limit=3)
        assert [record.id for record in coming] == [jobs[1].id, jobs[3].id, jobs[2].id]


async def test_jobs_of_both_stores_are_counted_together(split: Split) -> None:
    async with split.scheduler:
        await mixed(split, 5)
        assert await split.scheduler.queues.counts() == {("default", State.PENDING): 5}
        [queue] = await split.scheduler.queues.list()
        assert (queue.queued, queue.scheduled) == (5, 0)


@HALVES
async def test_a_job_is_found_changed_put_off_explained_and_deleted_wherever_it_is(
    split: Split, half: str
) -> None:
    jobs = split.scheduler.jobs
    async with split.scheduler:
        await mixed(split, 2)
        job = await task_of(split, half).options(delay="30m").enqueue("x")
        await jobs.edit(job.id, args=("y",), priority=0)
        await jobs.snooze(job.id, "10m")
        record = await jobs.get(job.id)
        assert (record.arguments, record.priority) == ({"name": "y"}, 0)
        assert timedelta(minutes=39) < record.due_at - record.created_at <= timedelta(minutes=41)
        assert "not due until" in str(await jobs.explain(job.id))
        await jobs.delete(job.id)
        with pytest.raises(JobNotFound):
            await jobs.get(job.id)
        assert sum((await split.scheduler.queues.counts()).values()) == 2


async def test_jobs_of_both_stores_are_cancelled_in_one_step(split: Split) -> None:
    async with split.scheduler:
        near, far = await mixed(split, 2)
        answers = await split.scheduler.jobs.cancel_many([near, "nothing", far])
        assert answers == {
            near: CancelAnswer.CANCELLED,
            "nothing": CancelAnswer.UNKNOWN,
            far: CancelAnswer.CANCELLED,
        }
        assert [answers[given].value for given in (near, "nothing")] == ["cancelled", "unknown"]


async def test_jobs_of_both_stores_are_deleted_pruned_and_purged(split: Split) -> None:
    async with split.scheduler:
        ids = await mixed(split, 6)
        await split.scheduler.jobs.cancel_many(ids[:2])
        assert await split.scheduler.prune(older_than=0, dry_run=True) == 2
        assert await split.scheduler.prune(older_than=0) == 2
        found = await split.scheduler.jobs.delete_many(arguments={"name": "2"})
        assert found.deleted == 1
        assert await split.scheduler.queues.purge("default", confirm="default") == 3
        assert await split.scheduler.queues.counts() == {("default", State.CANCELLED): 3}


@HALVES
async def test_a_job_that_runs_again_goes_where_its_new_delay_leads(split: Split, half: str) -> None:
    async with split.scheduler:
        old = await task_of(split, half).enqueue("x")
        await split.scheduler.jobs.cancel(old.id)
        soon = await split.scheduler.jobs.rerun(old.id)
        late = await split.scheduler.jobs.rerun(old.id, delay="2h")
        assert (await split.scheduler.jobs.get(soon.id)).parent == old.id
        assert await split.places([soon.id, late.id]) == [NEAR if half == "near" else FAR, FAR]


async def test_jobs_of_a_queue_with_a_limit_or_a_pause_go_far_from_then_on(split: Split) -> None:
    async with split.scheduler:
        before = await split.near.enqueue("before")
        await split.scheduler.queues.limit("default", 1)
        limited = await split.near.enqueue("limited")
        await split.scheduler.queues.limit("default")
        free = await split.near.enqueue("free")
        await split.scheduler.queues.pause("default")
        paused = await split.near.enqueue("paused")
        assert await split.places([job.id for job in (before, limited, free, paused)]) == [
            NEAR,
            FAR,
            NEAR,
            FAR,
        ]


async def test_another_process_learns_of_a_limit_within_a_second(split: Split, files_url: str) -> None:
    other = Split(files_url)
    async with split.scheduler, other.scheduler:
        await other.near.enqueue("x")
        await split.scheduler.queues.limit("default", 1)

        async def goes_far() -> bool:
            return await other.places([(await other.near.enqueue("x")).id]) == [FAR]

        await until(goes_far)


async def test_jobs_of_queues_that_are_named_in_the_url_all_go_far(files_url: str) -> None:
    split = Split(f"{files_url}&far_queues=billing,mail")
    async with split.scheduler:
        jobs = [
            await split.near.options(queue=queue).enqueue("x") for queue in ("default", "billing", "mail")
        ]
        assert await split.places([job.id for job in jobs]) == [NEAR, FAR, FAR]


async def test_the_same_file_near_and_far_is_refused(files_url: str) -> None:
    url = files_url.replace("far.db", "near.db")
    with pytest.raises(ConfigError, match="near and far are the same store"):
        Scheduler(url)
    with pytest.raises(ConfigError, match="near and far are the same store"):
        await Scheduler(url.replace("near.db?", "./near.db?")).open()


async def test_what_may_be_forgotten_is_not_put_off_for_long(files_url: str) -> None:
    """A near store in memory stands for any that keeps nothing."""
    split = Split(files_url.replace("?", "?near=memory&", 1))
    async with split.working(), asyncio.timeout(20):
        job = await split.near.options(delay=4).enqueue("x")
        assert await split.places([job.id]) == [[0]]
        await split.scheduler.jobs.snooze(job.id, 1)
        for change in ({"delay": "1h"}, {"at": datetime.now(UTC) + timedelta(days=7)}):
            with pytest.raises(InvalidOption, match=r"keeps nothing over a restart, .* within 5 seconds"):
                await split.scheduler.jobs.edit(job.id, **change)
        with pytest.raises(InvalidOption, match="cancel it, and enqueue it anew"):
            await split.scheduler.jobs.snooze(job.id, "7d")


async def test_memory_gets_jobs_only_while_a_worker_of_this_process_runs_such_ones(files_url: str) -> None:
    split = Split(files_url.replace("?", "?near=memory&", 1))
    memory, near = [0], [1]

    async def places(**options: Any) -> list[int]:
        [found] = await split.places([(await split.near.options(**options).enqueue("x")).id])
        return found

    async with split.scheduler:
        assert await places() == near, "this process is a client"
        async with split.scheduler.worker(queues=["default"]):
            assert await places() == memory
            assert await places(queue="elsewhere") == near
            assert await places(delay=6) == near
        assert await places() == near, "its worker has stopped"


async def test_a_job_in_memory_runs_and_is_seen_in_this_process_alone(files_url: str) -> None:
    url = files_url.replace("?", "?near=memory&", 1)
    split, other = Split(url), Scheduler(url)
    async with split.working(), other:
        job = await split.near.enqueue("x")
        assert await job.result(timeout=10) == "x"
        assert await split.places([job.id]) == [[0]]
        with pytest.raises(JobNotFound):
            await other.jobs.get(job.id)


async def test_who_did_what_is_kept_in_one_place_and_read_in_pages(split: Split) -> None:
    """Also where the near store forgets."""
    async with split.scheduler:
        ids = await mixed(split, 6)
        for job_id in ids:
            await split.scheduler.jobs.cancel(job_id, by="ann")
        await split.scheduler.jobs.cancel(ids[0], by="ann")
        await split.scheduler.queues.pause("mail", by="bob")
        near, far = split.scheduler.store.parts
        assert await near.entries(None, limit=99) == []
        seen, before = list[str](), None
        while page := await split.scheduler.store.entries(None, limit=2, before=before):
            seen += [entry.target for entry in page]
            before = page[-1].id
        assert seen == ["[queue mail]", *(f"[job {job_id}]" for job_id in reversed(ids))]
