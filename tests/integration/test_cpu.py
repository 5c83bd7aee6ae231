"""Tasks in child processes: parallel, killed alone, replaced when worn, and gone with their worker."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from duetime import JobContext, Scheduler, Snooze
from duetime.errors import ConfigError, InvalidTask, JobCancelled, JobFailed
from duetime.model.ids import new_job_id
from duetime.model.instants import SECOND
from duetime.model.job import NewJob, StoredJob
from duetime.model.states import State
from duetime.runtime.liveness import is_gone
from tests.integration import cpu_tasks
from tests.integration.cpu_tasks import Order, Seen
from tests.integration.kit import Fleet, until
from tests.integration.tasks import heed_in_thread, spin, wait_in_thread


@pytest.fixture
def scheduler(store_url: str) -> Scheduler:
    return Scheduler(store_url)


def cpu(scheduler: Scheduler, function: Callable[..., Any], **options: Any) -> Any:
    return scheduler.task(name=function.__name__, cpu=True, **options)(function)


async def read(scheduler: Scheduler, job_id: str) -> StoredJob:
    return (await scheduler.store.get([job_id]))[0]


async def reaches(scheduler: Scheduler, job_id: str, state: State) -> StoredJob:
    async def there() -> StoredJob | None:
        record = await read(scheduler, job_id)
        return record if record.state is state else None

    record = await until(there, what=f"the state {state}")
    assert record is not None
    return record


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


@pytest.mark.covers("cpu-timeout")
async def test_a_timeout_kills_that_child_and_no_other(scheduler: Scheduler, fleet: Fleet) -> None:
    stuck_task, wait, gate = cpu(scheduler, spin), cpu(scheduler, wait_in_thread), fleet.gate()
    async with scheduler, scheduler.worker(cpu_children=2):
        calm = await wait.enqueue(gate.path)
        stuck = await stuck_task.options(timeout="300ms").enqueue()
        with pytest.raises(JobFailed, match="timed out after 300 milliseconds"):
            await stuck.result(timeout=20)
        record = await read(scheduler, stuck.id)
        assert is_gone((await fleet.entry("start", job=stuck.id)).pid, None)
        gate.open()
        assert await calm.result(timeout=20) == (await fleet.entry("start", job=calm.id)).pid

    assert (record.state, record.reason) == (State.FAILED, "timeout")


@pytest.mark.covers("cpu-timeout")
async def test_a_cancelled_job_is_killed_together_with_what_it_started(
    scheduler: Scheduler, fleet: Fleet, tmp_path: Path
) -> None:
    start, pid_file = cpu(scheduler, cpu_tasks.start_program), tmp_path / "pid"
    async with scheduler, scheduler.worker(cpu_children=1):
        job = await start.enqueue(str(pid_file))
        child = (await fleet.entry("start", job=job.id)).pid
        program = int(pid_file.read_text(encoding="ascii"))
        assert await scheduler.jobs.cancel(job.id, reason="no longer wanted") == "requested"
        await reaches(scheduler, job.id, State.CANCELLED)
        assert is_gone(child, None)
        await until(lambda: is_gone(program, None), what="the end of the program")


async def test_within_its_grace_time_a_job_that_looks_ends_by_itself(
    scheduler: Scheduler, fleet: Fleet
) -> None:
    heed, who = cpu(scheduler, heed_in_thread, cancel_grace=60), cpu(scheduler, cpu_tasks.who)
    async with scheduler, scheduler.worker(cpu_children=1):
        job = await heed.enqueue()
        child = (await fleet.entry("start", job=job.id)).pid
        assert await scheduler.jobs.cancel(job.id, reason="no longer wanted") == "requested"
        await reaches(scheduler, job.id, State.CANCELLED)
        assert await (await who.enqueue()).result(timeout=20) == child, "it was not killed"


async def test_past_its_grace_time_a_job_that_does_not_look_is_killed(
    scheduler: Scheduler, fleet: Fleet
) -> None:
    stuck = cpu(scheduler, spin, cancel_grace="100ms")
    async with scheduler, scheduler.worker(cpu_children=1):
        job = await stuck.enqueue()
        child = (await fleet.entry("start", job=job.id)).pid
        assert await scheduler.jobs.cancel(job.id, reason="no longer wanted") == "requested"
        await reaches(scheduler, job.id, State.CANCELLED)
        assert is_gone(child, None)


async def test_signals_are_understood_across_processes(scheduler: Scheduler) -> None:
    put_off = cpu(scheduler, cpu_tasks.put_off)
    async with scheduler, scheduler.worker(cpu_children=1):
        job = await put_off.enqueue()
        assert await job.result(timeout=20) == 2, "the second claim"
        [attempt] = await scheduler.store.attempts(job.id)

    assert attempt.outcome == "snoozed"


@pytest.mark.covers("cpu-crash")
@pytest.mark.parametrize(
    ("how", "said"), [("exit", "exit code 7"), ("kill", "killed by SIGKILL"), ("fork", "exit code 7")]
)
async def test_a_child_that_dies_is_a_failure_of_its_job_alone(
    scheduler: Scheduler, fleet: Fleet, how: str, said: str
) -> None:
    die, wait, gate = (
        cpu(scheduler, cpu_tasks.die_first, retries=[0.01]),
        cpu(scheduler, wait_in_thread),
        fleet.gate(),
    )
    async with scheduler, scheduler.worker(cpu_children=2):
        calm = await wait.enqueue(gate.path)
        job = await die.enqueue(how)
        await job.result(timeout=20)
        gate.open()
        await calm.result(timeout=20)
        record = await read(scheduler, job.id)
        [lost] = await scheduler.store.attempts(job.id)

    assert lost.outcome == "crashed child"
    assert lost.error is not None
    assert said in lost.error
    assert (record.state, record.failures, record.crashes) == (State.SUCCEEDED, 1, 0)


async def test_a_child_is_replaced_after_so_many_jobs(scheduler: Scheduler) -> None:
    who = cpu(scheduler, cpu_tasks.who)
    async with scheduler, scheduler.worker(cpu_children=1, cpu_max_jobs=2):
        pids = [await (await who.enqueue()).result(timeout=20) for _ in range(4)]

    assert pids[0] == pids[1] != pids[2] == pids[3]


async def test_a_child_is_replaced_when_it_holds_too_much_memory(scheduler: Scheduler) -> None:
    keep = cpu(scheduler, cpu_tasks.keep)
    async with scheduler, scheduler.worker(cpu_children=1, cpu_max_memory="200MB"):
        pids = [await (await keep.enqueue(size)).result(timeout=20) for size in (1, 1, 300, 1)]

    assert pids[0] == pids[1] == pids[2] != pids[3]


async def test_past_the_grace_time_a_child_is_killed_and_its_job_waits_for_another_worker(
    scheduler: Scheduler, fleet: Fleet
) -> None:
    stuck = cpu(scheduler, spin)
    async with scheduler:
        async with scheduler.worker(cpu_children=1, grace="50ms") as worker:
            job = await stuck.enqueue()
            child = (await fleet.entry("start", job=job.id)).pid
            pids = worker._children.pids
        record = await read(scheduler, job.id)
        [attempt] = await scheduler.store.attempts(job.id)

    assert child in pids
    assert all(is_gone(pid, None) for pid in pids)
    assert (record.state, record.failures, record.crashes) == (State.PENDING, 0, 0)
    assert attempt.outcome == "interrupted"


@pytest.mark.covers("cpu-orphan")
async def test_no_child_and_no_program_of_one_survives_a_worker_that_is_killed(
    fleet: Fleet, tmp_path: Path
) -> None:
    app = fleet.app(cpu=True)
    async with app.scheduler:
        worker = await fleet.start(cpu=True, cpu_children=2)
        job = await app.seize.enqueue(str(tmp_path / "pid"))
        busy = (await fleet.entry("start", job=job.id)).pid

        def with_spare() -> list[int]:
            found = children_of(worker.pid)
            return found if len(found) == 2 else []

        children = await until(with_spare, what="a child at work and one that is kept ready")
        assert busy in children
        left = [*children, int((tmp_path / "pid").read_text(encoding="ascii"))]
        worker.kill()
        await until(lambda: all(is_gone(pid, None) for pid in left), what="the end of its children")


async def test_signals_to_a_child_are_left_to_the_worker(scheduler: Scheduler, fleet: Fleet) -> None:
    wait, gate = cpu(scheduler, wait_in_thread), fleet.gate()
    async with scheduler, scheduler.worker(cpu_children=1):
        job = await wait.enqueue(gate.path)
        child = (await fleet.entry("start", job=job.id)).pid
        assert os.getpgid(child) != os.getpgid(0), "Ctrl-C in a terminal goes to the group"
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(child, number)
        gate.open()
        assert await job.result(timeout=20) == child


async def test_a_childs_log_is_handled_by_the_worker(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    tell = cpu(scheduler, cpu_tasks.tell)
    async with scheduler, scheduler.worker(cpu_children=1) as worker:
        job = await tell.enqueue()
        await job.result(timeout=20)
        [child] = [pid for pid in worker._children.pids if pid in {r.process for r in caplog.records}]

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


@pytest.mark.parametrize("how", ["output", "note", "words", "log", "fork"])
async def test_a_child_survives_what_a_job_does_to_it(scheduler: Scheduler, how: str) -> None:
    misbehave, who = cpu(scheduler, cpu_tasks.misbehave), cpu(scheduler, cpu_tasks.who)
    async with scheduler, scheduler.worker(cpu_children=1):
        before = await (await who.enqueue()).result(timeout=20)
        job = await misbehave.enqueue(how)
        if how == "words":
            with pytest.raises(JobCancelled, match=r"\\ud800"):
                await job.result(timeout=20)
        else:
            assert await job.result(timeout=20) == before
        assert await (await who.enqueue()).result(timeout=20) == before


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
    monkeypatch.setattr("duetime.runtime.children.address.importing", lambda: "app")
    with pytest.raises(ConfigError, match=r'app starts a worker .* `if __name__ == "__main__":`'):
        await scheduler.worker().__aenter__()


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX" and int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


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
