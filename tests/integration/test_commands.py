"""Commands reach real workers: idle, busy, blocked, draining, and just killed."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from functools import partial
from statistics import median

import pytest

from duetime import Scheduler, WorkerRecord
from duetime.errors import InvalidOption, WorkerGone, WorkerNotFound
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.runtime.upkeep.hint_listener import _VAGUE_PAUSE
from duetime.testing.conformance.kit import worker_info
from tests.integration import tasks
from tests.integration.kit import PATIENCE, Fleet, until
from tests.integration.tasks import App

ROUNDS = 10
FAR = "1h"
"""A lease so long that no pulse falls into a test: what reaches the worker came by a hint."""


async def the_worker(scheduler: Scheduler) -> WorkerRecord:
    (worker,) = [worker for worker in await scheduler.workers.list() if worker.state == "alive"]
    return worker


async def seconds(call: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await call()
    return time.perf_counter() - began


async def has_state(scheduler: Scheduler, job_id: str, state: State) -> bool:
    return (await scheduler.jobs.get(job_id)).state is state


async def ways(scheduler: Scheduler, worker: str) -> float:
    """How long commands took to reach the worker, in seconds, by the store's own clock."""
    commands = await scheduler.workers.commands(worker, limit=100)
    return median((one.taken_at - one.created_at).total_seconds() for one in commands if one.taken_at)


async def told_back_and_forth(scheduler: Scheduler, worker: str) -> list[float]:
    """Pause and resume a worker again and again, and return how long each answer took."""
    taken: list[float] = []
    for _ in range(ROUNDS):
        taken.append(await seconds(lambda: scheduler.workers.pause(worker, wait=20)))
        taken.append(await seconds(lambda: scheduler.workers.resume(worker, wait=20)))
    return taken


async def test_an_idle_worker_answers_at_once(
    fleet: Fleet, record_property: Callable[[str, object], None]
) -> None:
    app = fleet.app()
    async with app.scheduler as scheduler:
        await fleet.start(lease=FAR)
        worker = await the_worker(scheduler)

        async def job() -> None:
            await (await app.note.enqueue()).result(timeout=20)

        yardstick = median([await seconds(job) for _ in range(ROUNDS)])
        taken = median(await told_back_and_forth(scheduler, worker.id))
        reach = await ways(scheduler, worker.id)

    figures = f"reached in {reach * 1e3:.1f} ms, answered in {taken * 1e3:.1f} ms; a job took {yardstick * 1e3:.1f} ms"
    record_property("idle worker", figures)
    print(figures)  # noqa: T201 - for whoever asks with -s
    # By a hint, as a job; a vague hint is looked into once per moment.
    assert taken < 10 * yardstick + 2 * _VAGUE_PAUSE, figures


async def test_a_busy_worker_answers_between_its_jobs(
    fleet: Fleet, record_property: Callable[[str, object], None]
) -> None:
    app = fleet.app()
    async with app.scheduler as scheduler:
        await fleet.start(lease=FAR, concurrency=4)
        worker = await the_worker(scheduler)
        handles = await scheduler.enqueue_many([app.work.call(0.05) for _ in range(3_000)])
        await fleet.entry("start")
        answers = [
            await seconds(lambda: scheduler.workers.stop_job(worker.id, "none", wait=20))
            for _ in range(ROUNDS)
        ]
        left = [job for job in await scheduler.store.get([h.id for h in handles]) if not job.state.terminal]
        reach = await ways(scheduler, worker.id)

    figures = f"reached in {reach * 1e3:.1f} ms, answered in {median(answers) * 1e3:.1f} ms"
    record_property("busy worker", figures)
    print(figures)  # noqa: T201 - for whoever asks with -s
    # Each of the answers came while jobs waited in line: commands do not stand behind them.
    assert left, "the worker ran out of work: it was not busy all the time"


async def test_a_paused_worker_finishes_what_runs_and_starts_nothing_until_it_is_resumed(
    fleet: Fleet,
) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler as scheduler:
        await fleet.start(lease=FAR, window="10s")
        worker = await the_worker(scheduler)
        running = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=running.id)
        ahead = await app.note.options(delay="8s").enqueue()
        await until(partial(has_state, scheduler, ahead.id, State.RUNNING), what="a claim ahead")

        answer = await scheduler.workers.pause(worker.id, reason="reindexing", wait=20)
        record = await scheduler.workers.get(worker.id)
        await until(partial(has_state, scheduler, ahead.id, State.PENDING), what="the claim given back")
        gate.open()
        assert await running.result(timeout=20)
        waiting = await app.note.enqueue()
        # An answer is later than whatever the worker did about the hint of that job.
        await scheduler.workers.stop_job(worker.id, "none", wait=20)
        (untouched,) = await scheduler.store.get([waiting.id])
        assert (untouched.state, untouched.fence) == (State.PENDING, 0), "it was claimed"
        assert await scheduler.workers.resume(worker.id, wait=20) == "resumed"
        await waiting.result(timeout=20)
        resumed = await scheduler.workers.get(worker.id)

    assert answer == "paused; 1 job still running"
    assert (record.paused, record.paused_reason, record.running) == (True, "reindexing", 1)
    assert record.paused_at is not None
    assert (resumed.paused, resumed.paused_at, resumed.paused_reason) == (False, None, None)


async def test_a_pause_outlives_the_id_that_the_worker_had(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler as scheduler:
        await fleet.start(lease="3s")
        first = await the_worker(scheduler)
        await scheduler.workers.pause(first.id, reason="reindexing", wait=20)
        await scheduler.store.bury([first.id])

        async def renewed() -> list[WorkerRecord]:
            known = await scheduler.workers.list()
            return [worker for worker in known if worker.state == "alive" and worker.paused]

        (heir,) = await until(renewed, what="the worker under another id, paused")
        waiting = await app.note.enqueue()
        await scheduler.workers.stop_job(heir.id, "none", wait=20)
        assert (await waiting.record()).state is State.PENDING
        await scheduler.workers.resume(heir.id, wait=20)
        await waiting.result(timeout=20)

    assert heir.id != first.id
    assert heir.paused_reason == "reindexing"


async def test_a_worker_that_is_told_to_stop_drains_and_can_then_be_hurried(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler as scheduler:
        process = await fleet.start(lease=FAR, grace=FAR)
        worker = await the_worker(scheduler)
        job = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=job.id)
        answer = await scheduler.workers.stop(worker.id, wait=20)
        late = await app.note.enqueue()
        assert not process.ended
        assert (await job.record()).state is State.RUNNING
        assert "1 job cancelled" in (await scheduler.workers.stop(worker.id, now=True, wait=20) or "")
        await fleet.entry("stopped", pid=process.pid)
        record = await scheduler.workers.get(worker.id)
        with pytest.raises(WorkerGone, match=f"{worker.id} on .* stopped at 20"):
            await scheduler.workers.pause(worker.id)

        assert (await job.record()).state is State.PENDING
        assert (await late.record()).state is State.PENDING

    assert answer == "stopping; 1 job may end within the grace time"
    assert record.state == "stopped"


async def test_one_job_is_stopped_and_its_neighbour_goes_on(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler as scheduler:
        await fleet.start(lease=FAR)
        worker = await the_worker(scheduler)
        stopped, neighbour = await app.wait_for.enqueue(gate.path), await app.wait_for.enqueue(gate.path)
        for job in (stopped, neighbour):
            await fleet.entry("start", job=job.id)
        await scheduler.workers.stop_job(worker.id, stopped.id, reason="too greedy", wait=20)
        record = (await fleet.ended(scheduler.store, [stopped.id]))[stopped.id]
        gate.open()
        assert await neighbour.result(timeout=20)

    assert (record.state, record.reason) == (State.CANCELLED, "too greedy")


async def test_stacks_show_where_each_job_waits(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler as scheduler:
        await fleet.start(lease=FAR)
        worker = await the_worker(scheduler)
        jobs = [await app.wait_for.enqueue(gate.path), await app.wait_in_thread.enqueue(gate.path)]
        for job in jobs:
            await fleet.entry("start", job=job.id)
        text = await scheduler.workers.stacks(worker.id, wait=20)
        gate.open()

    for job in jobs:
        assert f"task job {job.id} of {job.task}" in text
        assert re.search(rf'File "{re.escape(tasks.__file__)}", line \d+, in {job.task}\n', text)


@pytest.mark.covers("blocked-loop-unseen")
async def test_stacks_of_a_worker_whose_loop_is_blocked_show_what_blocks_it(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler as scheduler:
        await fleet.start(lease=FAR)
        worker = await the_worker(scheduler)
        job = await app.block_loop.enqueue(25.0)
        await fleet.entry("start", job=job.id)
        text = await scheduler.workers.stacks(worker.id, wait=20)
        assert fleet.ledger.entries("end", job=job.id) == [], "the loop was free again"

    assert "time.sleep(seconds)" in text
    assert f"task job {job.id} of block_loop\n  running; its stack is that of its thread" in text


@pytest.mark.parametrize("moment", ["before:take_commands", "after:take_commands", "before:finish_command"])
@pytest.mark.covers("commands-answered")
async def test_a_worker_killed_with_a_command_pending_leaves_it_recorded(fleet: Fleet, moment: str) -> None:
    app = fleet.app()
    async with app.scheduler as scheduler:
        victim = await fleet.start(failpoint=f"{moment}:kill")
        worker = await the_worker(scheduler)
        waiting = asyncio.ensure_future(scheduler.workers.pause(worker.id, reason="why", wait=PATIENCE))
        await until(lambda: victim.ended, what="the death of the worker")
        victim.reap()
        await fleet.start()
        with pytest.raises(WorkerGone, match=f"{worker.id} on .* is dead, last heard of at 20"):
            await waiting
        (command,) = await scheduler.workers.commands(worker.id)
        assert (await scheduler.workers.get(worker.id)).state == "dead"

    assert (command.kind, command.reason, command.dropped) == ("pause", "why", True)
    assert command.outcome == "the worker died before it answered"
    assert (command.taken_at is None) == (moment == "before:take_commands")


async def test_a_worker_that_does_not_answer_keeps_the_command(store_url: str) -> None:
    async with App(store_url).scheduler as scheduler:
        await scheduler.store.register(worker_info("silent"), lease=3600 * SECOND)
        with pytest.raises(TimeoutError, match="silent has not answered pause within 50 milliseconds"):
            await scheduler.workers.pause("silent", wait="50ms")
        assert await scheduler.workers.resume("silent", wait=0) is None
        kinds = [command.kind for command in await scheduler.workers.commands("silent")]
        with pytest.raises(InvalidOption, match="wait must be longer than 0"):
            await scheduler.workers.stacks("silent", wait=0)
        with pytest.raises(WorkerNotFound, match="there is no worker nobody"):
            await scheduler.workers.stop("nobody")

    assert kinds == ["resume", "pause"]


async def test_an_embedded_worker_stops_working_and_its_program_goes_on(store_url: str) -> None:
    app = App(store_url)
    async with app.scheduler as scheduler, scheduler.lifespan(lease=FAR):
        worker = await the_worker(scheduler)
        await scheduler.workers.stop(worker.id, wait=20)

        async def stopped() -> bool:
            return (await scheduler.workers.get(worker.id)).state == "stopped"

        await until(stopped, what="the end of the worker")
        job = await app.note.enqueue()
        assert (await job.record()).state is State.PENDING
