from __future__ import annotations

import asyncio
import os
import signal
import sys
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from duetime.model.outcome import Cancelled, Failed, Interrupted, Outcome, Released, Succeeded
from duetime.model.task import TaskOptions
from duetime.model.time import SECOND
from duetime.runtime.codec.arguments import Arguments
from duetime.runtime.identity import is_gone
from duetime.runtime.running.children.messages import RunJob
from duetime.runtime.running.children.process import ChildPool
from duetime.runtime.running.executor import Executor
from duetime.runtime.running.handler import Handler, TaskLocation, TaskModule
from duetime.runtime.running.run import Run
from duetime.runtime.running.threads import ThreadRunner
from tests.integration import cpu_tasks, ledger, tasks
from tests.unit.runtime.kit import claim

WHO = Handler(
    name="task",
    function=cpu_tasks.who,
    is_async=False,
    options=TaskOptions(cpu=True),
    arguments=Arguments(cpu_tasks.who, task="task"),
)
HANDLERS = {"task": WHO}


@pytest.fixture
async def pool() -> AsyncIterator[ChildPool]:
    made = ChildPool(HANDLERS)
    yield made
    await made.close()


async def who(pool: ChildPool) -> Outcome:
    return await Executor(HANDLERS, ThreadRunner(), pool).execute(Run(claim(), started_at=0))


async def test_without_a_task_for_it_no_child_is_started() -> None:
    pool = ChildPool({})
    pool.start()
    assert pool.pids == []


async def test_a_child_is_ready_before_a_job_needs_it_and_another_when_it_is_lent(pool: ChildPool) -> None:
    pool.start()
    [first] = pool.pids
    child = pool.lend()
    assert child.pid == first
    assert len(pool.pids) == 2
    await pool.take_back(child)
    assert await who(pool) == Succeeded(str(first)), "one that has worked is used before one that has not"
    assert len(pool.pids) == 2


async def test_a_closed_pool_leaves_nothing_behind(pool: ChildPool) -> None:
    pool.start()
    await who(pool)
    pids = pool.pids
    await pool.close()
    assert len(pids) == 2
    assert all(is_gone(pid, None) for pid in pids)
    assert pool.pids == []


async def test_a_child_that_died_in_between_is_not_lent(pool: ChildPool) -> None:
    pool.start()
    child = pool.lend()
    await child.ready.wait()
    await pool.take_back(child)
    os.kill(child.pid, signal.SIGKILL)
    await child.ended()
    outcome = await who(pool)
    assert isinstance(outcome, Succeeded)
    assert outcome.result != str(child.pid)


async def test_a_child_that_owes_its_answer_is_killed_when_it_comes_back(pool: ChildPool) -> None:
    run = Run(claim(), started_at=0)
    executing = asyncio.create_task(Executor(HANDLERS, ThreadRunner(), pool).execute(run))
    run.task = executing  # type: ignore[assignment]
    await asyncio.sleep(0)
    [child] = pool._lent
    run.stop(Cancelled("by a user"))
    run.stop(Interrupted(reason="a stop"), again=True)
    assert await executing == Cancelled("by a user")
    assert is_gone(child.pid, None)


async def test_children_that_die_at_once_are_not_started_for_ever(
    pool: ChildPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    start = pool._start

    def count() -> Any:
        child = start()
        started.append(child.pid)
        os.kill(child.pid, signal.SIGKILL)
        return child

    monkeypatch.setattr(pool, "_start", count)
    pool.start()
    outcome = await who(pool)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "crashed child"
    assert "died while it started: killed by SIGKILL" in outcome.error
    assert len(started) <= 3


async def test_when_no_process_can_be_started_the_claim_goes_back(
    pool: ChildPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Any:
        raise BlockingIOError("too many processes")

    monkeypatch.setattr(pool, "_start", refuse)
    pool.start()
    assert await who(pool) == Released(wait=SECOND)


async def test_a_child_that_dies_with_orders_unread_has_died_like_any_other(pool: ChildPool) -> None:
    pool.start()
    child = pool.lend()
    await child.ready.wait()
    os.kill(child.pid, signal.SIGSTOP)
    calling = asyncio.create_task(child.call(RunJob(pool.address(WHO), claim(), 0, None)))
    await asyncio.sleep(0)
    os.kill(child.pid, signal.SIGKILL)
    outcome = await calling
    assert isinstance(outcome, Failed)
    assert "died while it ran the job: killed by SIGKILL" in outcome.error
    assert child._life.exception() is None


async def test_a_job_that_is_asked_to_stop_before_it_starts_sees_that(
    pool: ChildPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ledger.VARIABLE, str(tmp_path / "ledger"))
    child = pool.lend()
    heed = RunJob(TaskLocation(TaskModule(tasks.__name__), "heed_in_thread"), claim(), 0, None)
    calling = asyncio.create_task(child.call(heed))
    await asyncio.sleep(0)
    assert not child.ready.is_set()
    child.stop("no longer wanted")
    assert await asyncio.wait_for(calling, 20) == Cancelled("no longer wanted")
    await pool.take_back(child)
    assert child.free


async def test_paths_and_arguments_reach_the_child_however_odd_or_long(
    pool: ChildPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, path = ["program", "\udce9", "x" * 500_000], [*sys.path, "/\udce9"]
    monkeypatch.setattr("sys.argv", arguments)
    monkeypatch.setattr("sys.path", path)
    pool.start()
    child = pool.lend()
    compare = RunJob(TaskLocation(TaskModule(cpu_tasks.__name__), "surroundings"), claim(), 0, None)
    outcome = await asyncio.wait_for(child.call(compare), 20)
    assert outcome == Succeeded(str(zlib.crc32(ascii([arguments, path]).encode())))
    await pool.take_back(child)


async def test_whatever_else_keeps_a_child_from_starting_fails_the_job(
    pool: ChildPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [object()])
    pool.start()
    outcome = await who(pool)
    assert isinstance(outcome, Failed)
    assert "no child process can be started: TypeError" in outcome.error
    monkeypatch.undo()
    assert isinstance(await who(pool), Succeeded)


async def test_a_spare_that_cannot_be_started_takes_nothing_from_the_job(
    pool: ChildPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.start()
    monkeypatch.setattr("sys.argv", [object()])
    assert isinstance(await who(pool), Succeeded)
    assert len(pool.pids) == 1


async def test_a_pool_that_closes_does_not_wait_for_ever_for_a_process_that_does_not_end(
    pool: ChildPool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pool.start()
    child = pool.lend()
    monkeypatch.setattr(child._process, "poll", lambda: None)
    monkeypatch.setattr("duetime.runtime.running.children.process._CLOSE_TIMEOUT", 0.1)
    await asyncio.wait_for(pool.close(), 20)
    assert f"child process {child.pid} does not end" in caplog.text
    monkeypatch.undo()
    await child.ended()
