"""Values that are too deep or too large, and rows that somebody has edited: refused, or shown, and in nobody's way."""

from __future__ import annotations

import gc
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from duetime import Ended, Scheduler
from duetime.cli.jobs import _job_values
from duetime.errors import InvalidArguments, InvalidOption, JobFailed, ResultNotStored, ResultUnreadable
from duetime.model.ids import new_job_id
from duetime.model.job import DEFAULT_QUEUE, NewJob
from duetime.model.outcome import Succeeded
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.worker import WorkerStats
from duetime.scheduler.job_handle import JobHandle
from duetime.stores.base import PulseQuery
from duetime.testing.conformance.kit import LEASE, TASK, finish, hire, job, take, take_one
from tests.integration.kit import until
from tests.support.edits import edit

DEEP = "[" * 5_000 + "]" * 5_000
LONG = "7" * 5_000
"""As JSON, a whole number that no process reads unless it is told to."""

pytestmark = pytest.mark.covers("deep-values")


def nested(deep: int) -> Any:
    value: Any = 1
    for _ in range(deep):
        value = [value]
    return value


@pytest.fixture
def scheduler(store_url: str) -> Scheduler:
    return Scheduler(store_url)


async def read(scheduler: Scheduler, job_id: str) -> StoredJob:
    return (await scheduler.store.get([job_id]))[0]


async def ended(scheduler: Scheduler, *, result: str, **changes: Any) -> str:
    """Store a job and its result as another version might."""
    store = scheduler.store
    await hire(store, "w1")
    (job_id,) = await store.enqueue([job(**changes)])
    await finish(store, await take_one(store), Succeeded(result), now=await store.now())
    return job_id


@pytest.mark.parametrize("value", [DEEP, LONG, "[1", '"\\ud800"'], ids=["deep", "long", "cut", "surrogate"])
async def test_what_cannot_be_read_is_shown_as_such_and_hides_no_other_job(
    scheduler: Scheduler, value: str
) -> None:
    async with scheduler:
        odd = await ended(scheduler, result=value, payload=value)
        sound = await ended(scheduler, result="7")
        last, first = await scheduler.jobs.list()
        assert (last.id, last.result, first.id) == (sound, 7, odd)
        assert (first.arguments, first.result) == (value, None)
        assert first.result_error is not None
        assert first.result_error.startswith("the stored result cannot be read")
        assert len(first.result_error) < 300
        assert await scheduler.jobs.get(odd) == first
        json.dumps(_job_values(first))
        assert "succeeded" in str(await scheduler.jobs.explain(odd)).lower()
        assert await scheduler.jobs.attempts(odd)
        again = await scheduler.jobs.rerun(odd)
        assert (await scheduler.jobs.get(again.id)).arguments == value


@pytest.mark.parametrize("value", [DEEP, LONG, '"seven"'], ids=["deep", "long", "another type"])
async def test_a_result_that_cannot_be_read_is_told_by_an_error_of_our_own(
    scheduler: Scheduler, value: str
) -> None:
    @scheduler.task(name=TASK)
    async def greet() -> int:
        return 1

    async with scheduler:
        handle = await greet.enqueue()
        store = scheduler.store
        await hire(store, "w1")
        await finish(store, await take_one(store), Succeeded(value), now=await store.now())
        with pytest.raises(ResultUnreadable, match=f"job {handle.id} of {TASK} succeeded, but"):
            await handle.result(timeout=5)


@pytest.mark.parametrize(
    ("deep", "why"), [(101, "nested more than 100 deep"), (0, "more than 4,300 digits")], ids=["deep", "long"]
)
@pytest.mark.parametrize("cpu", [False, True], ids=["here", "in a child"])
async def test_a_job_whose_result_cannot_be_stored_has_succeeded_and_says_why_it_has_none(
    store_url: str, deep: int, why: str, cpu: bool
) -> None:
    from tests.integration.tasks import give_nested

    scheduler = Scheduler(store_url)
    give = scheduler.task(name="give", cpu=cpu)(give_nested)
    async with scheduler, scheduler.worker():
        handle: JobHandle[Any] = await give.enqueue(deep)
        with pytest.raises(ResultNotStored, match=why):
            await handle.result(timeout=30)
        record = await handle.record()
    assert (record.state, record.result) == (State.SUCCEEDED, None)
    assert why in (record.result_error or "")


async def test_arguments_are_refused_wherever_they_enter(scheduler: Scheduler) -> None:
    @scheduler.task(name="take")
    async def take_in(value: Any) -> None: ...

    from duetime import every

    text = "nested more than 100 deep"
    async with scheduler:
        for value in (nested(101), nested(350), nested(5_000)):
            with pytest.raises(InvalidArguments, match=text):
                await take_in.enqueue(value)
            with pytest.raises(InvalidArguments, match=text):
                await scheduler.schedules.put("s", every("1h"), take_in, args=(value,))
            with pytest.raises(InvalidArguments, match=text):
                await scheduler.schedules.put("s", every("1h"), take_in, kwargs={"value": value})
        await take_in.enqueue(nested(100))
        await scheduler.schedules.put("s", every("1h"), take_in, args=(nested(100),))
        with pytest.raises(InvalidArguments, match=text):
            await scheduler.schedules.edit("s", args=(nested(101),))
        with pytest.raises(InvalidOption, match="NUL"):
            await take_in.options(key="a\0b").enqueue(1)
        with pytest.raises(InvalidOption, match="NUL"):
            await scheduler.jobs.list(key="a\0b")
        [record] = await scheduler.jobs.list()
        assert record.arguments == {"value": nested(100)}
        assert (await scheduler.schedules.get("s")).arguments == {"value": nested(100)}


@pytest.mark.covers("unreadable-row")
@pytest.mark.parametrize("value", [DEEP, LONG], ids=["deep", "long"])
async def test_a_job_that_cannot_be_decoded_fails_alone_and_its_callback_is_told(
    scheduler: Scheduler, value: str
) -> None:
    told: list[Ended] = []

    @scheduler.task(name="alert")
    async def alert(end: Ended) -> None:
        told.append(end)

    @scheduler.task(name="count", on_failure=alert, retries=5)
    async def count(number: int) -> int:
        return number + 1

    async with scheduler, scheduler.worker(concurrency=1):
        template = count.call(1).job
        payload = f'{{"number":{value}}}'
        bad = template._replace(id=new_job_id(), payload=payload)
        await scheduler.store.enqueue([bad])
        good = await count.enqueue(1)
        assert await good.result(timeout=20) == 2

        async def called() -> bool:
            return bool(told)

        await until(called, what="the callback")
        record = await read(scheduler, bad.id)
    assert (record.state, record.reason) == (State.FAILED, "undecodable")
    assert (told[0].id, told[0].arguments) == (bad.id, payload)


@pytest.mark.parametrize(
    "column", ["due_at", "created_at", "started_at", "finished_at", "expires_at", "occurrence"]
)
async def test_a_time_beyond_the_calendar_hides_no_job(scheduler: Scheduler, column: str) -> None:
    async with scheduler:
        odd, sound = await scheduler.store.enqueue([job(), job()])
        if scheduler.url.startswith("redis:") and column in {"expires_at", "occurrence"}:
            await edit(scheduler.url, "job", odd, "extras", json.dumps({column: str(2**62)}))
        else:
            await edit(scheduler.url, "job", odd, column, 2**62)
        assert {record.id for record in await scheduler.jobs.list()} == {odd, sound}
        await scheduler.jobs.upcoming()
        await scheduler.jobs.explain(odd)
        json.dumps(_job_values(await scheduler.jobs.get(odd)))


NUMBERS = (
    "priority", "due_at", "created_at", "started_at", "finished_at", "fence", "failures", "crashes", "blames", "retries",
    "timeout", "cancel_requested_at", "occurrence", "span_first", "span_count", "expires_at", "result_ttl", "failure_ttl",
    "progress",
)  # fmt: skip


@pytest.mark.parametrize("value", ["soon", b"\xff"], ids=["text", "bytes"])
@pytest.mark.parametrize("column", NUMBERS)
async def test_a_number_that_is_something_else_hides_no_job_in_sqlite(
    sqlite_url: str, column: str, value: str | bytes
) -> None:
    scheduler = Scheduler(sqlite_url)
    async with scheduler:
        odd, sound = await scheduler.store.enqueue([job(), job()])
        await edit(sqlite_url, "job", odd, column, value)
        found = {record.id: record for record in await scheduler.jobs.list()}
        assert {*found} == {odd, sound}
        assert f"its row cannot be read: {column} is" in (found[odd].error or "")
        await scheduler.jobs.upcoming()
        await scheduler.jobs.explain(odd)
        await scheduler.jobs.attempts(odd)
        json.dumps(_job_values(await scheduler.jobs.get(odd)))


@pytest.mark.parametrize(
    "column", ["task", "payload", "queue", "worker", "result", "error", "reason", "tags"]
)
@pytest.mark.parametrize("value", [b"\xff", "a\x00b"], ids=["bytes", "NUL"])
async def test_a_text_that_is_something_else_hides_no_job_in_sqlite(
    sqlite_url: str, column: str, value: str | bytes
) -> None:
    scheduler = Scheduler(sqlite_url)
    async with scheduler:
        odd, sound = await scheduler.store.enqueue([job(), job()])
        await edit(sqlite_url, "job", odd, column, value)
        assert {record.id for record in await scheduler.jobs.list()} == {odd, sound}
        json.dumps(_job_values(await scheduler.jobs.get(odd)))


@pytest.mark.covers("unreadable-row")
async def test_bytes_that_are_no_text_hide_no_job_and_keep_none_from_running_in_sqlite(
    sqlite_url: str,
) -> None:
    scheduler = Scheduler(sqlite_url)

    @scheduler.task(name=TASK)
    async def greet() -> int:
        return 1

    async with scheduler:
        odd, _ = await scheduler.store.enqueue([job(), job()])
        with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as file:
            file.execute("UPDATE duetime_jobs SET payload = CAST(x'22ff22' AS TEXT) WHERE id = ?", [odd])
        file.close()
        assert len(await scheduler.jobs.list()) == 2
        assert (await scheduler.jobs.get(odd)).arguments == "\N{REPLACEMENT CHARACTER}"
        async with scheduler.worker(concurrency=1):
            assert await (await greet.enqueue()).result(timeout=20) == 1

            async def over() -> bool:
                return (await read(scheduler, odd)).state.terminal

            await until(over, what="the end of the odd row")
        assert (await read(scheduler, odd)).reason == "undecodable"


@pytest.fixture
def collector_off() -> Iterator[None]:
    """What is dropped goes at once or not at all."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("collector_off")
@pytest.mark.covers("unreadable-row")
async def test_a_read_that_has_met_bytes_leaves_no_old_view_of_the_database_behind_in_sqlite(
    sqlite_url: str,
) -> None:
    async with Scheduler(sqlite_url) as scheduler:
        (odd,) = await scheduler.store.enqueue([job()])
        with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as file:
            file.execute("UPDATE duetime_jobs SET payload = CAST(x'22ff22' AS TEXT) WHERE id = ?", [odd])
            file.commit()
        assert len(await scheduler.jobs.list()) == 1
        (new,) = await scheduler.store.enqueue([job()])
        assert (await scheduler.jobs.get(new)).id == new


CLAIMED = (
    "failures", "crashes", "blames", "retries", "timeout", "expires_at", "result_ttl", "failure_ttl", "occurrence",
    "callbacks", "tags", "unique_key", "gate", "on_crash", "payload",
)  # fmt: skip


@pytest.mark.covers("unreadable-row")
@pytest.mark.parametrize("value", ["soon", b"\xff"], ids=["text", "bytes"])
@pytest.mark.parametrize("column", CLAIMED)
async def test_a_row_of_other_types_stops_neither_the_worker_nor_the_next_job_in_sqlite(
    sqlite_url: str, column: str, value: str | bytes
) -> None:
    scheduler = Scheduler(sqlite_url)

    @scheduler.task(name=TASK)
    async def greet() -> int:
        return 1

    async with scheduler:
        (odd,) = await scheduler.store.enqueue([NewJob(id=new_job_id(), task=TASK, payload="{}")])
        await edit(sqlite_url, "job", odd, column, value)
        async with scheduler.worker(concurrency=1):
            sound = await greet.enqueue()
            assert await sound.result(timeout=20) == 1
            if column in {"tags", "unique_key", "gate", "on_crash", "callbacks"}:
                return  # Any text can stand there.

            async def over() -> bool:
                return (await read(scheduler, odd)).state.terminal

            await until(over, what="the end of the odd row")
        record = await read(scheduler, odd)
    assert (record.state, record.reason) == (State.FAILED, "undecodable")


@pytest.mark.covers("unreadable-row")
@pytest.mark.parametrize("value", ["soon", b"\xff"], ids=["text", "bytes"])
async def test_a_time_that_is_none_is_no_time_to_look_again_in_sqlite(
    sqlite_url: str, value: str | bytes
) -> None:
    async with Scheduler(sqlite_url) as scheduler:
        store = scheduler.store
        await hire(store, "w1", "odd")
        (odd,) = await store.enqueue([job()])
        await edit(sqlite_url, "job", odd, "due_at", value)
        for column in ("started_at", "lease_until"):
            await edit(sqlite_url, "worker", "odd", column, value)
        assert (await store.next_due([DEFAULT_QUEUE], [TASK])).due_at is None
        wants = PulseQuery(queues=(DEFAULT_QUEUE,), tasks=(TASK,), schedules=True, orphans=True)
        beat = await store.pulse("w1", WorkerStats(), lease=LEASE, wants=wants)
        assert beat.sight is not None
        assert (beat.sight.due_at, beat.lease_ends, beat.newest) == (None, None, 0)


@pytest.mark.covers("unreadable-row")
async def test_rows_of_other_types_are_rescued_with_the_others_in_sqlite(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)

    @scheduler.task(name=TASK)
    async def greet() -> int:
        return 1

    async with scheduler:
        store = scheduler.store
        await hire(store, "w1", lease=1)
        odd, sound = await store.enqueue([job(), job()])
        claims = await take(store)
        await store.mark_started([claim.token for claim in claims], await store.now())
        for column in ("failures", "crashes", "blames"):
            await edit(sqlite_url, "job", odd, column, "soon")
        async with scheduler.worker():

            async def over() -> bool:
                return all([(await read(scheduler, one)).state.terminal for one in (odd, sound)])

            await until(over, what="the end of both")
        assert (await read(scheduler, sound)).state is State.SUCCEEDED
        record = await read(scheduler, odd)
        assert (record.state, record.reason) == (State.FAILED, "undecodable")
        with pytest.raises(JobFailed):
            await JobHandle(odd, TASK, lambda: store, json.loads).result()


@pytest.mark.covers("unreadable-row")
@pytest.mark.parametrize("column", ["queues", "tasks", "declares"])
async def test_a_worker_that_cannot_be_read_hides_no_other(scheduler: Scheduler, column: str) -> None:
    await see_the_other_worker(scheduler, column)


@pytest.mark.parametrize("column", ["lease_until", "running"])
async def test_a_worker_with_numbers_that_are_none_hides_no_other(untyped_url: str, column: str) -> None:
    await see_the_other_worker(Scheduler(untyped_url), column)


async def see_the_other_worker(scheduler: Scheduler, column: str) -> None:
    async with scheduler:
        await hire(scheduler.store, "odd", "sound")
        await edit(scheduler.url, "worker", "odd", column, DEEP)
        assert "sound" in {worker.id for worker in await scheduler.workers.list()}
        await scheduler.store.rescue("sound", "c1")
