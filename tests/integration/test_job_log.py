"""What a worker logs of the jobs that it runs, and of workers that die."""

from __future__ import annotations

import logging

import pytest

from duetime import Scheduler, Task
from duetime.errors import JobFailed, StoreUnavailable
from tests.integration import cpu_tasks
from tests.integration.kit import Fleet, until

JOBS = "duetime.jobs"


def of_jobs(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == JOBS]


async def test_a_try_that_fails_is_a_warning_and_the_end_of_its_job_an_error(
    store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = Scheduler(store_url)

    @scheduler.task(name="fail", retries=[0.01], queue="mail")
    async def fail() -> None:
        raise LookupError("no such user")

    @scheduler.task(name="greet", queue="mail")
    def greet() -> str:
        return "hello"

    with caplog.at_level(logging.DEBUG, logger=JOBS):
        async with scheduler, scheduler.worker(queues=["mail"]) as worker:
            job = await fail.enqueue()
            with pytest.raises(JobFailed):
                await job.result(timeout=20)
            await (await greet.enqueue()).result(timeout=20)
            assert await scheduler.jobs.logs(job.id) == [], "these lines are the worker's, not the job's"
    retried, failed, succeeded = of_jobs(caplog)

    assert [record.levelname for record in (retried, failed, succeeded)] == ["WARNING", "ERROR", "DEBUG"]
    assert retried.getMessage().startswith(f"job {job.id} of fail failed (attempt 1, ")
    assert retried.getMessage().endswith(" and runs again in 0.01 s: LookupError: no such user")
    assert failed.getMessage().startswith(f"job {job.id} of fail failed (attempt 2, ")
    assert failed.getMessage().endswith("): LookupError: no such user")
    for record in (retried, failed):
        assert record.exc_info is not None
        assert isinstance(record.exc_info[1], LookupError)
        assert record.exc_text is not None
        assert record.exc_text.splitlines()[0] == "  Traceback (most recent call last):"
        assert 'raise LookupError("no such user")' in record.exc_text
        assert "/duetime/runtime/" not in record.exc_text
    fields = vars(failed)
    assert {name: fields[name] for name in ("job_id", "task", "queue", "attempt", "outcome", "worker")} == {
        "job_id": job.id,
        "task": "fail",
        "queue": "mail",
        "attempt": 2,
        "outcome": "failed",
        "worker": worker.id,
    }
    assert 0 <= fields["duration"] < 20
    assert (vars(retried)["attempt"], vars(retried)["outcome"]) == (1, "retrying")
    assert vars(succeeded)["outcome"] == "succeeded"


async def test_a_failure_in_a_child_process_is_logged_once_by_its_worker(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = Scheduler(sqlite_url)
    fail: Task[[], None] = scheduler.task(name="fail", cpu=True)(cpu_tasks.fail)
    async with scheduler, scheduler.worker():
        with pytest.raises(JobFailed):
            await (await fail.enqueue()).result(timeout=30)
    [failed] = of_jobs(caplog)
    assert failed.levelname == "ERROR"
    assert failed.exc_text is not None
    assert "in fail" in failed.exc_text


async def test_the_death_of_a_worker_and_the_job_that_failed_by_it_are_a_line_each_in_the_whole_fleet(
    fleet: Fleet,
) -> None:
    victim = await fleet.start()
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler as scheduler:
        job = await app.wait_for_once.enqueue(gate.path)
        await fleet.entry("start", job=job.id)
        others = await fleet.start_many(3)
        [dead] = [worker for worker in await scheduler.workers.list() if worker.pid == victim.pid]
        victim.kill()
        await fleet.ended(scheduler.store, [job.id])

        def said(text: str) -> list[str]:
            return [line for worker in others for line in worker.log.splitlines() if text in line]

        await until(lambda: said(f"job {job.id} of wait_for_once failed"), what="a line about the job")
        # Each of them looks once more, and finds nothing new.
        await fleet.start()
        assert len(said(" dead worker, ")) == 1, said("")
        assert said(f"whose process is gone: {dead.id}")
        [line] = said(f"job {job.id} of")
        assert line.startswith(f"ERROR {JOBS}: ")
        assert f"worker {dead.id} died while the job ran" in line


async def test_a_worker_that_stops_with_outcomes_it_could_not_store_says_how_many(
    sqlite_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetime.runtime.worker.DRAIN_TIMEOUT", 0.1)
    scheduler = Scheduler(sqlite_url)

    @scheduler.task(name="greet")
    async def greet() -> None: ...

    async def away(settlements: object) -> None:
        raise StoreUnavailable("away")

    async with scheduler, scheduler.worker() as worker:
        monkeypatch.setattr(scheduler.store, "settle", away)
        await greet.enqueue()
        await until(lambda: worker.stats().done, what="the end of the run")
    assert [
        record.levelname
        for record in caplog.records
        if record.getMessage().startswith(
            "the outcome of 1 run could not be stored before the worker stopped"
        )
    ] == ["ERROR"]
