from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duetime.errors import InvalidOption, NotInJob
from duetime.model.job import Claim
from duetime.model.outcome import Succeeded
from duetime.model.reports import Progress
from duetime.model.task import TaskOptions
from duetime.model.time import SECOND, from_datetime
from duetime.runtime.codec.arguments import Arguments
from duetime.runtime.running.context import JobContext, current_job
from duetime.runtime.running.executor import Executor
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.run import Run, RunOutput, current_run
from duetime.runtime.running.threads import ThreadRunner

DUE = datetime(2030, 1, 1, tzinfo=UTC)

seen: list[JobContext] = []


async def look() -> None:
    seen.append(current_job())


def look_from_a_thread() -> None:
    seen.append(current_job())


def run_of(task: str, job_id: str = "job-1") -> Run:
    claim = Claim(
        job_id=job_id,
        fence=7,
        claim_id="claim",
        task=task,
        payload="{}",
        queue="default",
        priority=5,
        due_at=from_datetime(DUE),
        claimed_at=from_datetime(DUE),
        failures=1,
        crashes=1,
        blames=0,
        on_crash="retry",
        retries=None,
        timeout=None,
        schedule=None,
        occurrence=None,
        cancel_requested_at=None,
        key="invoice-7",
        tags="|eu|nightly|",
        parent="job-0",
        expires_at=from_datetime(DUE) + 60 * SECOND,
    )
    return Run(claim, started_at=from_datetime(DUE) + SECOND // 4)


@pytest.fixture
def executor() -> Executor:
    seen.clear()
    handlers = {
        function.__name__: Handler(
            name=function.__name__,
            function=function,
            is_async=function is look,
            options=TaskOptions(),
            arguments=Arguments(function, task=function.__name__),
        )
        for function in (look, look_from_a_thread)
    }
    return Executor(handlers, ThreadRunner())


@pytest.mark.parametrize("task", ["look", "look_from_a_thread"])
async def test_a_handler_sees_the_job_it_runs_for(executor: Executor, task: str) -> None:
    assert isinstance(await executor.execute(run_of(task)), Succeeded)

    [job] = seen
    assert (job.id, job.task, job.attempt, job.fence) == ("job-1", task, 3, 7)
    assert job.due_at == DUE
    assert job.lateness == timedelta(milliseconds=250)
    assert job.idempotency_key == "job-1"
    assert (job.queue, job.key, job.tags, job.parent) == ("default", "invoice-7", ("eu", "nightly"), "job-0")
    assert job.expires_at == DUE + timedelta(minutes=1)
    assert job.deadline is None
    assert repr(job) == f"JobContext(id='job-1', task='{task}', attempt=3)"


@pytest.mark.parametrize("task", ["look", "look_from_a_thread"])
async def test_a_handler_sees_which_time_of_its_schedule_it_stands_for(executor: Executor, task: str) -> None:
    await executor.execute(run_of(task))
    run = run_of(task)
    run.claim = run.claim._replace(schedule="nightly", occurrence=from_datetime(DUE))
    await executor.execute(run)
    assert [(job.schedule, job.occurrence) for job in seen] == [(None, None), ("nightly", DUE)]


@pytest.mark.parametrize("task", ["look", "look_from_a_thread"])
async def test_a_handler_sees_when_it_will_be_stopped(executor: Executor, task: str) -> None:
    run = run_of(task)
    run.claim = run.claim._replace(timeout=10 * SECOND)
    await executor.execute(run)
    assert seen[0].deadline == seen[0].started_at + timedelta(seconds=10)


class Listening:
    """Hears everything, passes on nothing."""

    captures_logs = True

    def notice(self, output: RunOutput) -> None:
        pass


async def test_progress_can_be_told_with_and_without_await() -> None:
    run = run_of("look")
    run.reader = Listening()
    current_run.set(run)
    current_job().progress(0.1)
    await current_job().progress(0.4, "parsing")
    assert run.output is not None
    assert run.output.take_rest().progress == Progress(run.claim.token, 0.4, "parsing")


async def test_awaiting_progress_lets_other_tasks_run() -> None:
    current_run.set(run_of("look"))
    others: list[str] = []
    task = asyncio.create_task(_note(others))
    await current_job().progress(0.1)
    assert others == ["ran"]
    await task


async def _note(others: list[str]) -> None:
    others.append("ran")


@pytest.mark.parametrize("fraction", [-0.1, 1.5, math.nan, "half"])
async def test_progress_outside_0_to_1_is_refused_where_it_is_told(fraction: Any) -> None:
    run = run_of("look")
    run.reader = Listening()
    current_run.set(run)
    with pytest.raises(InvalidOption, match="a number from 0 to 1"):
        current_job().progress(fraction)
    assert run.output is None


async def test_a_run_that_nobody_listens_to_may_speak() -> None:
    current_run.set(run_of("look"))
    await current_job().progress(1)


def test_outside_a_job_there_is_no_current_job() -> None:
    with pytest.raises(NotInJob, match="no job is running here"):
        current_job()
