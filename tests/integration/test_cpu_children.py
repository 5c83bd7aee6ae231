"""Child processes are killed alone, replaced when worn, and gone with their worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from duetime import Scheduler
from duetime.errors import JobCancelled, JobFailed
from duetime.model.states import State
from duetime.runtime.identity import is_gone
from duetime.runtime.running.children.process import ChildProcess
from duetime.runtime.worker import Worker
from tests.integration import cpu_tasks
from tests.integration.cpu_kit import cpu, reaches, read
from tests.integration.kit import Fleet, until
from tests.integration.tasks import heed_in_thread, spin, wait_in_thread


@pytest.fixture
def scheduler(store_url: str) -> Scheduler:
    return Scheduler(store_url)


@pytest.mark.covers("cpu-timeout")
async def test_a_timeout_kills_that_child_and_no_other(
    scheduler: Scheduler, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck_task, wait, gate = cpu(scheduler, spin), cpu(scheduler, wait_in_thread), fleet.gate()
    kill, killed = ChildProcess.kill, set[int]()

    def noted(child: ChildProcess) -> None:
        killed.add(child.pid)
        kill(child)

    monkeypatch.setattr(ChildProcess, "kill", noted)
    async with scheduler, scheduler.worker(cpu_children=2):
        calm = await wait.enqueue(gate.path)
        stuck = await stuck_task.options(timeout="300ms").enqueue()
        with pytest.raises(JobFailed, match="timed out after 300 milliseconds"):
            await stuck.result(timeout=20)
        record = await read(scheduler, stuck.id)
        assert [is_gone(pid, None) for pid in killed] == [True]
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
            assert isinstance(worker, Worker)
            pids = worker.children.pids
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
