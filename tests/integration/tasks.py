"""The tasks that real worker processes run in these tests; each writes down what it does."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from duetime import Ended, Limit, Scheduler, cron, current_job
from duetime.model.time import from_datetime
from duetime.runtime.running.run import current_run
from tests.integration import ledger

_LOOK = 0.005

log = logging.getLogger(__name__)


def say(kind: str) -> None:
    """Write down that the current job has come to a point."""
    job = current_job()
    ledger.write(kind, job=job.id, task=job.task, due_at=from_datetime(job.due_at), attempt=job.attempt)


@contextmanager
def _told() -> Iterator[None]:
    say("start")
    try:
        yield
    except asyncio.CancelledError:
        say("cancelled")
        raise
    say("end")


def is_open(gate: str) -> bool:
    """Whether somebody has made the file."""
    return Path(gate).exists()


async def note() -> None:
    """Do nothing, and say so."""
    say("start")


async def tick() -> None:
    """Run every second."""
    say("start")


async def work(seconds: float) -> int:
    """Take some time without blocking anybody."""
    with _told():
        await asyncio.sleep(seconds)
    return os.getpid()


async def work_once(seconds: float) -> int:
    """Like `work`, for a task that must never run twice."""
    return await work(seconds)


async def wait_for(gate: str) -> int:
    """Go on until somebody makes the file."""
    with _told():
        while not is_open(gate):  # noqa: ASYNC110 - the gate is a file, opened by another process
            await asyncio.sleep(_LOOK)
    return os.getpid()


async def wait_for_own(gate: str) -> int:
    """Like `wait_for`, in each process for a file of its own."""
    return await wait_for(f"{gate}-{os.getpid()}")


async def wait_for_once(gate: str) -> int:
    """Like `wait_for`, for a task that must never run twice."""
    return await wait_for(gate)


def wait_in_thread(gate: str) -> int:
    """Go on in a thread until somebody makes the file."""
    with _told():
        while not is_open(gate):
            time.sleep(_LOOK)
    return os.getpid()


def heed_in_thread() -> None:
    """Go on in a thread until somebody cancels the job."""
    say("start")
    while True:
        current_job().check_cancelled()
        time.sleep(_LOOK)


async def tell(gate: str) -> None:
    """Say how far it is, and wait for a gate half way."""
    job = current_job()
    log.info("try %d begins", job.attempt)
    await job.progress(0.4, "half way")
    await wait_for(gate)
    log.info("try %d ends", job.attempt)
    job.progress(1, "done")


def spin() -> None:
    """Never end, nor wait for anything."""
    say("start")
    while True:
        pass


def seize(pid_file: str | None = None) -> None:
    """Never end, and never let go of the interpreter either; nor does a program end that it starts if asked to."""
    if pid_file is not None:
        program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(pid_file).write_text(str(program.pid), encoding="ascii")
    say("start")
    sum(range(10**18))


async def chat(lines: int) -> None:
    """Log many lines, and go on."""
    for n in range(1, lines + 1):
        log.info("line %d", n)
    await asyncio.sleep(60)


async def block_loop(seconds: float) -> None:
    """Do what an async task must not do."""
    with _told():
        time.sleep(seconds)  # noqa: ASYNC251 - the offence is the point


async def freeze(gate: str) -> str:
    """Stop the whole process at the first try, as if the machine were suspended; at the next, wait for a gate."""
    if current_job().attempt > 1:
        await wait_for(gate)
        return "successor"
    with _told():
        os.kill(os.getpid(), signal.SIGSTOP)
    return "zombie"


async def serve(customer: int, gate: str | None = None) -> None:
    """Do something for a customer, or wait until somebody makes the file."""
    with _told():
        await asyncio.sleep(0.001)
        while gate is not None and not is_open(gate):  # noqa: ASYNC110 - opened by another process
            await asyncio.sleep(_LOOK)


async def reindex(tenant: str, gate: str | None = None) -> int | None:
    """Do what only one may do for a tenant, or wait until somebody makes the file; return the fence of the lock."""
    await serve(0, gate)
    return current_job().lock_fence


async def call_service() -> None:
    """Write down when the store let this run start."""
    claim = current_run.get().claim
    ledger.write("passed", job=claim.job_id, task=claim.task, due_at=claim.claimed_at)


async def die() -> None:
    """Take the worker down."""
    say("start")
    os._exit(9)


async def told(ended: Ended) -> None:
    """Write down which job has ended, and how."""
    ledger.write(f"told-{ended.state}", job=ended.id, task=ended.task)


class App:
    """A scheduler with all these tasks, for a client in the test or for a worker process."""

    def __init__(
        self,
        url: str,
        *,
        ticking: bool = False,
        waiting: str | None = None,
        cpu: bool = False,
        schedules: Mapping[str, str] | None = None,
    ) -> None:
        self.scheduler = scheduler = Scheduler(url)
        self.note = scheduler.task(name="note")(note)
        self.work = scheduler.task(name="work")(work)
        self.work_once = scheduler.task(name="work_once", on_crash="fail")(work_once)
        self.wait_for = scheduler.task(name="wait_for")(wait_for)
        self.wait_for_own = scheduler.task(name="wait_for_own")(wait_for_own)
        self.wait_for_once = scheduler.task(name="wait_for_once", on_crash="fail")(wait_for_once)
        self.wait_in_thread = scheduler.task(name="wait_in_thread")(wait_in_thread)
        self.heed_in_thread = scheduler.task(name="heed_in_thread")(heed_in_thread)
        self.tell = scheduler.task(name="tell")(tell)
        self.chat = scheduler.task(name="chat")(chat)
        self.block_loop = scheduler.task(name="block_loop")(block_loop)
        self.freeze = scheduler.task(name="freeze")(freeze)
        self.serve = scheduler.task(name="serve", limit=Limit(1, by="customer"))(serve)
        self.reindex = scheduler.task(name="reindex", lock="reindex:{tenant}")(reindex)
        self.call_service = scheduler.task(name="call_service", rate="10/200ms")(call_service)
        self.die = scheduler.task(name="die")(die)
        self.seize = scheduler.task(name="seize", cpu=cpu)(seize)
        self.told = told_ = scheduler.task(name="told")(told)
        self.telling = scheduler.task(name="telling", on_success=told_, on_failure=told_, on_cancel=told_)(
            note
        )
        self.telling_once = scheduler.task(name="telling_once", on_crash="fail", on_failure=told_)(die)
        self.telling_death = scheduler.task(name="telling_death", on_failure=told_)(die)
        if ticking:
            self.tick = scheduler.schedule(cron("* * * * * *"))(scheduler.task(name="tick")(tick))
        for name, expression in (schedules or {}).items():
            scheduler.schedule(cron(expression), name=name)(self.note)
        if waiting is not None:
            every_second = scheduler.schedule(cron("* * * * * *"), name="waiting", args=(waiting,))
            every_second(self.wait_for)


def give_nested(deep: int) -> Any:
    """Return a list in a list, and so on; for 0, a whole number that is too long."""
    value: Any = 1 if deep else 10**5_000
    for _ in range(deep):
        value = [value]
    return value
