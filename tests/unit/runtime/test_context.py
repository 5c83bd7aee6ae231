from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from duetime.errors import NotInJob
from duetime.model.instants import SECOND, from_datetime
from duetime.model.job import Claim
from duetime.model.outcome import Succeeded
from duetime.model.task import TaskOptions
from duetime.runtime.arguments import Arguments
from duetime.runtime.context import JobContext, current_job
from duetime.runtime.executor import Executor
from duetime.runtime.handler import Handler
from duetime.runtime.run import Run
from duetime.runtime.threads import ThreadRunner

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
        cancel_requested=False,
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


def test_outside_a_job_there_is_no_current_job() -> None:
    with pytest.raises(NotInJob, match="no job is running here"):
        current_job()
