"""What every adapter is, and the handler that all of them run; standard library only."""

from __future__ import annotations

import asyncio
import os
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

LEDGER = "PEERS_LEDGER"
"""The environment variable that names the file of what ran."""
CALLERS = 32
"""Callers that enqueue at once."""
_ENTRY = struct.Struct("<qdd")
_DAY = 86_400
_opened: list[int] = []


class Unsupported(Exception):
    """The system has no way to do this; the text says what it lacks, in a few words for the table."""


class Job(NamedTuple):
    """What every job carries: its number and its due time in seconds of the wall clock."""

    number: int
    due: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Schedules: number n comes at `first + n * step`, and each `period` seconds after."""

    count: int
    period: float
    first: float
    step: float

    def starts(self) -> list[float]:
        """Return when each schedule comes first."""
        return [self.first + n * self.step for n in range(self.count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a worker is to run."""

    concurrency: int
    """Jobs at once, or jobs a batch, whatever the system calls its main setting."""
    eager: bool = True
    """True: the shortest sensible documented poll; False: the system's own default."""
    plan: Plan | None = None
    """The schedules, for systems that declare them in the worker."""


class Client(ABC):
    """The enqueuing side; what is put is durable when the call returns."""

    @abstractmethod
    async def put(self, job: Job) -> None:
        """Store one job, due now (`job.due` is this moment, for the handler)."""

    async def put_each(self, jobs: Iterable[Job]) -> None:
        """Store jobs one after the other, as a program does that has nothing else to do meanwhile."""
        for job in jobs:
            await self.put(job)

    async def put_many(self, jobs: Sequence[Job]) -> None:
        """Store jobs that are due now by the bulk call."""
        del jobs
        raise Unsupported("no bulk call")

    @abstractmethod
    async def put_at(self, job: Job) -> None:
        """Store one job for its due time."""

    async def put_many_at(self, jobs: Sequence[Job]) -> None:
        """Store jobs for their due times, as fast as the system can."""
        await at_once(self.put_at, jobs)

    async def fill(self, count: int) -> None:
        """Store jobs for later, one a second from a day ahead, by the bulk call or by the SQL that its own call would write."""
        del count
        raise Unsupported("no way to fill it")

    async def schedules(self, plan: Plan) -> list[float]:
        """Store schedules (or nothing, if the worker declares them) and return when each comes first."""
        del plan
        raise Unsupported("no schedules of some seconds")


class Adapter(ABC):
    """One system on one database; made once per process."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def prepare(self) -> None:  # noqa: B027 -- many have no tables
        """Make the tables."""

    @abstractmethod
    def client(self) -> AbstractAsyncContextManager[Client]:
        """Open the enqueuing side."""

    @abstractmethod
    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        """Be the worker: call `ready`, which waits for the others, right before the first claim; work until cancelled."""

    @property
    def path(self) -> str:
        """The file, where the database is SQLite."""
        return self.url.removeprefix("sqlite:///")


def record(number: int, due: float) -> None:
    """Note that a job starts now: the whole handler of every system; `due` is 0 where it is not told."""
    if not _opened:
        _opened.append(os.open(os.environ[LEDGER], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644))
    os.write(_opened[0], _ENTRY.pack(number, time.time(), due))


def entries(content: bytes) -> Iterable[tuple[int, float, float]]:
    """Return number, start and due time of everything that was noted."""
    return _ENTRY.iter_unpack(content[: len(content) // _ENTRY.size * _ENTRY.size])


def first_job() -> Job:
    """Return a job for tomorrow, whose row is copied where a system is filled with jobs for later."""
    return Job(0, time.time() + _DAY)


async def at_once(put: Callable[[Job], Awaitable[None]], jobs: Sequence[Job]) -> None:
    """Put jobs one by one from 32 callers."""

    async def caller(share: Sequence[Job]) -> None:
        for job in share:
            await put(job)

    await asyncio.gather(*(caller(jobs[n::CALLERS]) for n in range(min(CALLERS, len(jobs)))))


def cron_starts(plan: Plan) -> list[float]:
    """Return when each schedule comes first: at a full second."""
    return [float(int(start)) for start in plan.starts()]


def cron_seconds(plan: Plan) -> list[str]:
    """Return the field of each rule that tells the seconds; the period must divide a minute."""
    period = int(plan.period)
    return [",".join(map(str, range(int(start) % period, 60, period))) for start in plan.starts()]


Command = tuple[Any, ...]
_CHUNK = 5_000


def piped(url: str, commands: Iterable[Command]) -> None:
    """Send all commands."""
    # Here, since the memory of workers is measured, and some of them need none of it.
    from redis import Redis

    waiting = iter(commands)
    with Redis.from_url(url) as client:
        while some := list(islice(waiting, _CHUNK)):
            pipe = client.pipeline(transaction=False)
            for command in some:
                pipe.execute_command(*command)
            pipe.execute()
