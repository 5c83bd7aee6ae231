"""Tasks in child processes: parallel, and otherwise as they are elsewhere."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from datetime import date
from pathlib import Path

import pytest

from duetime import JobContext, Scheduler, Snooze
from duetime.errors import ConfigError, InvalidTask, JobFailed
from duetime.model.ids import new_job_id
from duetime.model.job import NewJob
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.runtime.worker import Worker
from tests.integration import around_tasks, cpu_tasks
from tests.integration.cpu_kit import cpu, reaches, read
from tests.integration.cpu_tasks import Order, Seen
from tests.integration.kit import Fleet, until
from tests.integration.tasks import wait_in_thread


@pytest.fixture
def scheduler(store_url: str) -> Scheduler:
    return Scheduler(store_url)


async def test_jobs_run_side_by_side_in_processes_of_their_own(scheduler: Scheduler, tmp_path: Path) -> None:
    meet = cpu(scheduler, cpu_tasks.meet)
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    async with scheduler, scheduler.worker(cpu_children=2):
        jobs = [await meet.enqueue(here, there), await meet.enqueue(there, here)]
        pids = [await job.result(timeout=20) for job in jobs]

    assert len({*pids, os.getpid()}) == 3


async def test_arguments_results_and_the_current_job_are_what_they_are_elsewhere(
    scheduler: Scheduler,
) -> None:
    look = cpu(scheduler, cpu_tasks.look)
    order = Order(7, date(2026, 2, 28))
    async with scheduler, scheduler.worker(cpu_children=1):
        job = await look.enqueue(order)
        seen = await job.result(timeout=20)
        record = await job.record()

    assert isinstance(seen, Seen)
    assert seen.order == order
    assert (seen.job, seen.attempt, seen.fence) == (job.id, 1, 1)
    assert (seen.due_at, seen.started_at) == (record.due_at, record.started_at)


async def test_a_job_beyond_the_children_is_left_to_another_worker_and_plain_ones_go_on(
    scheduler: Scheduler, store_url: str, fleet: Fleet
) -> None:
    wait, gate = cpu(scheduler, wait_in_thread), fleet.gate()

    @scheduler.task(name="quick")
    async def quick() -> str:
        return "quick"

    async with scheduler, scheduler.worker(cpu_children=1):
        first = await wait.enqueue(gate.path)
        await fleet.entry("start", job=first.id)
        second = await wait.enqueue(gate.path)
        assert await (await quick.enqueue()).result(timeout=20) == "quick"
        assert ((await read(scheduler, second.id)).state, (await read(scheduler, second.id)).fence) == (
            State.PENDING,
            0,
        )
        other = Scheduler(store_url)
        cpu(other, wait_in_thread)
        async with other.worker(cpu_children=1) as helper:
            assert (await reaches(scheduler, second.id, State.RUNNING)).worker == helper.id
            gate.open()
            await asyncio.gather(first.result(timeout=20), second.result(timeout=20))


async def test_more_jobs_than_children_all_get_their_turn(scheduler: Scheduler) -> None:
    who = cpu(scheduler, cpu_tasks.who)
    async with scheduler, scheduler.worker(cpu_children=2):
        jobs = [await who.enqueue() for _ in range(20)]
        pids = {await job.result(timeout=20) for job in jobs}
        assert {(await read(scheduler, job.id)).fence for job in jobs} == {1}, "none was claimed in vain"

    assert len(pids) <= 3, "two at work, and one kept ready"


async def test_signals_are_understood_across_processes(scheduler: Scheduler) -> None:
    put_off = cpu(scheduler, cpu_tasks.put_off)
    async with scheduler, scheduler.worker(cpu_children=1):
        job = await put_off.enqueue()
        assert await job.result(timeout=20) == 2, "the second claim"
        [attempt] = await scheduler.store.attempts(job.id)

    assert attempt.outcome == "snoozed"


async def test_a_childs_log_is_handled_by_the_worker(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    tell = cpu(scheduler, cpu_tasks.tell)
    async with scheduler, scheduler.worker(cpu_children=1) as worker:
        job = await tell.enqueue()
        await job.result(timeout=20)
        assert isinstance(worker, Worker)
        [child] = [pid for pid in worker.children.pids if pid in {r.process for r in caplog.records}]

    [record] = [record for record in caplog.records if record.name == "cpu"]
    assert (record.levelno, record.getMessage(), record.process) == (logging.ERROR, f"in {job.id}", child)
    assert record.exc_text is not None
    assert "KeyError: 'NOTHING'" in record.exc_text


async def test_progress_and_logs_are_kept_with_the_job(scheduler: Scheduler, fleet: Fleet) -> None:
    report, tell, gate = cpu(scheduler, cpu_tasks.report), cpu(scheduler, cpu_tasks.tell), fleet.gate()
    async with scheduler, scheduler.worker(cpu_children=1):
        job = await report.enqueue(gate.path)

        async def half_way() -> bool:
            record = await read(scheduler, job.id)
            return (record.progress, record.progress_note) == (0.5, "step 1000")

        await until(half_way, what="the latest of many words")
        gate.open()
        await job.result(timeout=20)
        record = await read(scheduler, job.id)
        told = await tell.enqueue()
        await told.result(timeout=20)
        text = "".join(part.text for part in await scheduler.jobs.logs(told.id))

    assert (record.progress, record.progress_note) == (1.0, "done")
    assert f"ERROR cpu: in {told.id}" in text
    assert "KeyError: 'NOTHING'" in text


async def test_what_a_thread_of_an_earlier_job_logs_is_not_taken_for_the_next_ones(
    scheduler: Scheduler, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leave, let = cpu(scheduler, cpu_tasks.leave_talker), cpu(scheduler, cpu_tasks.let_talk)
    paths = str(tmp_path / "gate"), str(tmp_path / "done")
    async with scheduler, scheduler.worker(cpu_children=1):
        await (await leave.enqueue(*paths)).result(timeout=20)
        job = await let.enqueue(*paths)
        await job.result(timeout=20)
        text = "".join(part.text for part in await scheduler.jobs.logs(job.id))

    assert "ERROR cpu: mine" in text
    assert "late" not in text
    assert "late" in caplog.text


async def test_what_a_function_raises_is_recorded_with_its_own_lines(scheduler: Scheduler) -> None:
    fail, who = cpu(scheduler, cpu_tasks.fail), cpu(scheduler, cpu_tasks.who)
    async with scheduler, scheduler.worker(cpu_children=1):
        before = await (await who.enqueue()).result(timeout=20)
        job = await fail.enqueue()
        with pytest.raises(JobFailed, match="SystemExit: of its own"):
            await job.result(timeout=20)
        record = await read(scheduler, job.id)
        assert await (await who.enqueue()).result(timeout=20) == before, "the child lives on"

    assert record.reason == "error"
    assert record.traceback is not None
    assert "in fail\n" in record.traceback
    assert "/serve.py" not in record.traceback


async def test_arguments_that_do_not_fit_are_set_aside(scheduler: Scheduler) -> None:
    cpu(scheduler, cpu_tasks.keep, retries=3)
    async with scheduler, scheduler.worker(cpu_children=1):
        bad = NewJob(id=new_job_id(), task="keep", payload='{"megabytes": "many"}')
        await scheduler.store.enqueue([bad])
        record = await reaches(scheduler, bad.id, State.FAILED)

    assert record.reason == "undecodable"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("raise RuntimeError('not here')", "RuntimeError: not here"),
        ("os._exit(3)", "died while it started: exit code 3"),
    ],
    ids=["raises", "exits"],
)
@pytest.mark.covers("cpu-start")
async def test_a_module_that_children_cannot_import_fails_its_jobs_and_nothing_else(
    scheduler: Scheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, said: str
) -> None:
    name = f"unwilling_{abs(hash((what, str(tmp_path))))}"
    text = f"import os\nif os.getpid() != {os.getpid()}:\n    {what}\n\ndef run() -> None: ...\n"
    (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    run = cpu(scheduler, __import__(name).run)

    @scheduler.task(name="quick")
    async def quick() -> str:
        return "quick"

    async with scheduler, scheduler.worker(cpu_children=1):
        job = await run.enqueue()
        with pytest.raises(JobFailed, match=said):
            await job.result(timeout=20)
        record = await read(scheduler, job.id)
        assert await (await quick.enqueue()).result(timeout=20) == "quick"

    if "raise" in what:
        assert record.traceback is not None
        assert f"{name}.py" in record.traceback


async def test_a_task_that_no_child_would_find_keeps_the_worker_from_starting(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu(scheduler, cpu_tasks.who)
    monkeypatch.setattr(cpu_tasks, "who", cpu_tasks.look)
    async with scheduler:
        with pytest.raises(InvalidTask, match=r"cpu_tasks\.who is not that function"):
            await scheduler.worker().__aenter__()
        assert await scheduler.store.workers() == []


async def test_a_module_that_starts_a_worker_when_it_is_imported_does_not_do_so_in_a_child(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu(scheduler, cpu_tasks.who)
    monkeypatch.setattr("duetime.runtime.running.children.process.module_being_imported", lambda: "app")
    with pytest.raises(ConfigError, match=r'app starts a worker .* `if __name__ == "__main__":`'):
        await scheduler.worker().__aenter__()


@pytest.mark.parametrize("back", [True, False])
async def test_signals_and_middleware_reach_over_to_child_processes(
    scheduler: Scheduler, *, back: bool
) -> None:
    seen: list[str] = []

    @scheduler.middleware
    async def look(job: JobContext, call: Callable[[], Awaitable[object]]) -> object:
        try:
            return await call()
        except Snooze as snooze:
            seen.append(f"{job.task} is put off by {snooze.delay // SECOND} seconds")
            raise

    task = cpu(scheduler, cpu_tasks.signal_something)
    async with scheduler, scheduler.worker(cpu_children=1):
        job = await task.enqueue(back=back)

        async def snoozed() -> bool:
            return "snoozed" in [tried.outcome for tried in await scheduler.store.attempts(job.id)]

        await until(snoozed, what="the snooze")
    assert seen == ["signal_something is put off by 3600 seconds"]


async def test_code_around_a_handler_is_entered_in_the_child_process(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = around_tasks.scheduler
    monkeypatch.setattr(scheduler, "url", sqlite_url)
    async with scheduler, scheduler.worker(cpu_children=1):
        job = await around_tasks.count.enqueue()
        assert await job.result(timeout=30) == f"for {job.id}"
