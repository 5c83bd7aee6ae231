"""What a job says while it runs can be read by any process, and belongs to the try that said it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

import pytest

from duetime import JobRecord, LogPart, Scheduler, current_job
from duetime.errors import JobFailed, JobNotFound
from duetime.model.reports import HEAD_BYTES, HEAD_LINES, TAIL_BYTES, TAIL_LINES
from tests.integration.kit import Fleet, until

log = logging.getLogger("app")


@pytest.fixture(autouse=True)
def level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def lines(parts: Sequence[LogPart]) -> list[tuple[int, str]]:
    """What was logged, line by line, without the times: attempt and text."""
    return [
        (part.attempt, line.partition("Z ")[2] or line) for part in parts for line in part.text.splitlines()
    ]


async def test_progress_and_logs_are_seen_by_other_processes_while_the_job_runs(fleet: Fleet) -> None:
    await fleet.start()
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler as scheduler:
        job = await app.tell.enqueue(gate.path)

        async def half_way() -> JobRecord | None:
            record = await scheduler.jobs.get(job.id)
            return record if record.progress is not None and await scheduler.jobs.logs(job.id) else None

        record = await until(half_way, what="progress of a running job")
        assert record is not None
        assert (record.state, record.progress, record.progress_note) == ("running", 0.4, "half way")
        begins = (1, "INFO tests.integration.tasks: try 1 begins")
        assert lines(await scheduler.jobs.logs(job.id)) == [begins]
        gate.open()
        await job.result(timeout=20)
        record = await scheduler.jobs.get(job.id)
        assert (record.progress, record.progress_note) == (1.0, "done")
        assert lines(await scheduler.jobs.logs(job.id)) == [
            begins,
            (1, "INFO tests.integration.tasks: try 1 ends"),
        ]


@pytest.mark.covers("worker-killed")
async def test_what_was_logged_before_a_worker_was_killed_stays_with_that_try(fleet: Fleet) -> None:
    first = await fleet.start()
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler as scheduler:
        job = await app.tell.enqueue(gate.path)
        await until(lambda: scheduler.jobs.logs(job.id), what="a line in the log")
        first.kill()
        await fleet.start()

        async def back() -> bool:
            record = await scheduler.jobs.get(job.id)
            return record.attempt == 2 and record.progress is not None

        await until(back, what="the second try")
        gate.open()
        await job.result(timeout=20)
        assert lines(await scheduler.jobs.logs(job.id)) == [
            (1, "INFO tests.integration.tasks: try 1 begins"),
            (2, "INFO tests.integration.tasks: try 2 begins"),
            (2, "INFO tests.integration.tasks: try 2 ends"),
        ]


async def test_each_try_keeps_its_own_log_and_progress_starts_over(store_url: str) -> None:
    scheduler = Scheduler(store_url)
    told: list[float | None] = []

    @scheduler.task(name="fail", retries=[0])
    async def fail() -> None:
        told.append((await scheduler.jobs.get(current_job().id)).progress)
        current_job().progress(current_job().attempt / 10)
        log.warning("this will not do")
        raise LookupError

    async with scheduler, scheduler.worker():
        job = await fail.enqueue()
        with pytest.raises(JobFailed):
            await job.result(timeout=20)
        assert lines(await scheduler.jobs.logs(job.id)) == [
            (1, "WARNING app: this will not do"),
            (2, "WARNING app: this will not do"),
        ]
        assert (await scheduler.jobs.get(job.id)).progress == 0.2
    assert told == [None, None]


async def test_a_plain_function_speaks_from_its_thread(store_url: str) -> None:
    scheduler = Scheduler(store_url)

    @scheduler.task(name="sync")
    def sync() -> None:
        log.info("from a thread")
        current_job().progress(0.5, "half")

    async with scheduler, scheduler.worker():
        job = await sync.enqueue()
        await job.result(timeout=20)
        record = await scheduler.jobs.get(job.id)
        assert (record.progress, record.progress_note) == (0.5, "half")
        assert lines(await scheduler.jobs.logs(job.id)) == [(1, "INFO app: from a thread")]


@pytest.mark.covers("endless-logs")
@pytest.mark.parametrize("size", [1, 1_000])
async def test_a_log_without_end_is_bounded_and_tells_what_is_missing(store_url: str, size: int) -> None:
    scheduler = Scheduler(store_url)
    count = 5_000

    @scheduler.task(name="chat")
    async def chat() -> None:
        for n in range(count):
            log.info("%d %s", n, "x" * size)

    async with scheduler, scheduler.worker():
        job = await chat.enqueue()
        await job.result(timeout=60)
        parts = await scheduler.jobs.logs(job.id)
    kept = [line for part in parts for line in part.text.splitlines()]
    assert len(kept) + sum(part.dropped for part in parts) == count
    assert len(kept) <= HEAD_LINES + TAIL_LINES
    assert sum(map(len, kept)) <= HEAD_BYTES + TAIL_BYTES
    assert " 0 x" in kept[0]
    assert f" {count - 1} x" in kept[-1]


async def test_the_latest_lines_of_a_long_log_are_there_when_the_worker_is_killed(fleet: Fleet) -> None:
    worker = await fleet.start()
    app = fleet.app()
    count = HEAD_LINES + TAIL_LINES + 300
    async with app.scheduler as scheduler:
        job = await app.chat.enqueue(count)

        async def last_line() -> Sequence[LogPart]:
            parts = await scheduler.jobs.logs(job.id)
            return parts if parts and parts[-1].text.endswith(f"line {count}") else ()

        parts = await until(last_line, what="the last line")
        worker.kill()
    assert [part.dropped for part in parts if part.dropped]
    assert sum(part.past - part.line for part in parts) <= HEAD_LINES + TAIL_LINES


async def test_a_worker_may_keep_no_logs(store_url: str) -> None:
    scheduler = Scheduler(store_url)

    @scheduler.task(name="chat")
    async def chat() -> None:
        log.info("not kept")

    async with scheduler, scheduler.worker(capture_logs=False):
        job = await chat.enqueue()
        await job.result(timeout=20)
        assert await scheduler.jobs.logs(job.id) == []


async def test_the_log_of_an_unknown_job_is_an_error(store_url: str) -> None:
    async with Scheduler(store_url) as scheduler:
        with pytest.raises(JobNotFound):
            await scheduler.jobs.logs("nothing")


async def test_blocking_callers_read_logs_too(store_url: str) -> None:
    scheduler = Scheduler(store_url)

    @scheduler.task(name="chat")
    async def chat() -> None:
        log.info("hello")

    async with scheduler, scheduler.worker():
        job = await chat.enqueue()
        await job.result(timeout=20)
        parts = await asyncio.to_thread(scheduler.sync.jobs.logs, job.id)
    await asyncio.to_thread(scheduler.sync.close)
    assert lines(parts) == [(1, "INFO app: hello")]


async def test_progress_is_written_about_once_a_second_however_often_it_is_told(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = Scheduler(store_url)
    writes = 0

    @scheduler.task(name="count")
    async def count() -> float:
        """Tell until it was written twice, and return how long that took."""
        job, told, began = current_job(), 0, time.monotonic()
        while writes < 2 or told < 100:
            told += 1
            await job.progress(1 - 1 / told)
        return time.monotonic() - began

    async with scheduler:
        report = scheduler.store.report

        async def counted(*args: object) -> None:
            nonlocal writes
            writes += 1
            await report(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(scheduler.store, "report", counted)
        async with scheduler.worker():
            job = await count.enqueue()
            assert await job.result(timeout=20) > 1
