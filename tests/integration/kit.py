"""Real worker processes to start, stop and kill, and ways to wait for what they do."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import select
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, overload

from duetime.errors import StoreUnavailable
from duetime.model.job import JobId
from duetime.model.stored.jobs import StoredJob
from duetime.scheduler.task import Call
from duetime.stores.base import Store
from tests.integration import ledger
from tests.integration.ledger import Entry, Ledger
from tests.integration.nursery import Born, Nursery
from tests.integration.tasks import App

T = TypeVar("T")

PATIENCE = 30.0


@overload
async def until(
    condition: Callable[[], Awaitable[T]], *, within: float = ..., what: str | Callable[[], str]
) -> T: ...
@overload
async def until(condition: Callable[[], T], *, within: float = ..., what: str | Callable[[], str]) -> T: ...
async def until(
    condition: Callable[[], Any], *, within: float = PATIENCE, what: str | Callable[[], str]
) -> Any:
    """Return the first true answer of a condition, or fail when the time is up."""
    deadline = time.monotonic() + within
    while True:
        answer = condition()
        value = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within} s: {what() if callable(what) else what}")
        await asyncio.sleep(0.01)


async def available(verb: Callable[[], Awaitable[T]]) -> T:
    """Ask for something again and again, until the database is there."""
    while True:
        try:
            return await verb()
        except StoreUnavailable:
            await asyncio.sleep(0.02)


async def accepted(app: App, call: Call[Any]) -> JobId:
    """Enqueue one request, again and again until it is accepted; its id makes that harmless."""
    return (await available(lambda: app.scheduler.enqueue(call))).id


class WorkerProcess:
    """A worker that can be signalled."""

    def __init__(self, born: Born, *, log: Path) -> None:
        self.pid = born.pid
        self._leash = born.leash
        self._log = log

    @property
    def log(self) -> str:
        """What the process logged so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def errors(self) -> list[str]:
        """What it logged of anything that went wrong, other than that a busy machine did not let it run for a second."""
        marks = ("ERROR", "CRITICAL", "Traceback")
        wrong = [line for line in self.log.splitlines() if line.startswith(marks)]
        return [line for line in wrong if "the event loop has been blocked" not in line]

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._ends_within(0)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; a process that has ended is left alone."""
        if not self.ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it without a word."""
        self.signal(signal.SIGKILL)

    def reap(self) -> None:
        """End it, and return when it has ended."""
        self.kill()
        assert self._ends_within(PATIENCE), f"{self.pid} outlives a kill"

    def close(self) -> None:
        """End it, and let go of the line that leads to it."""
        self.signal(signal.SIGCONT)
        self.reap()
        self._leash.close()

    def _ends_within(self, seconds: float) -> bool:
        """Wait for the end, at which the kernel closes what the process had open."""
        return bool(select.select([self._leash], [], [], seconds)[0])


class Fleet:
    """The worker processes of one test on one store, and the ledger they write."""

    def __init__(self, url: str, folder: Path, nursery: Nursery) -> None:
        self.url = url
        self.folder = folder
        self._nursery = nursery
        self.ledger = Ledger(folder / "ledger")
        self.workers: list[WorkerProcess] = []

    def app(self, *, cpu: bool = False) -> App:
        """Return the tasks for a client."""
        return App(self.url, cpu=cpu)

    def gate(self, name: str = "gate") -> Gate:
        """Return something for jobs to wait for."""
        return Gate(self.folder / name)

    def launch(
        self,
        *,
        ticking: bool = False,
        waiting: str | None = None,
        cpu: bool = False,
        declares: Mapping[str, str] | None = None,
        host_key: str | None = None,
        clock_offset: float = 0,
        failpoint: str | None = None,
        url: str | None = None,
        network: str | None = None,
        **settings: Any,
    ) -> WorkerProcess:
        """Start a worker without waiting for it."""
        plan = {
            "url": self.url if url is None else url,
            "ticking": ticking,
            "waiting": waiting,
            "cpu": cpu,
            "declares": declares,
            "host_key": host_key,
            "clock_offset": clock_offset,
            "network": network,
            "failpoint": failpoint,
            "settings": settings,
        }
        environment = {**os.environ, ledger.VARIABLE: str(self.ledger.path)}
        log = self.folder / f"worker-{len(self.workers)}.log"
        worker = WorkerProcess(self._nursery.bear(plan, environment=environment, log=log), log=log)
        self.workers.append(worker)
        return worker

    async def start(self, **settings: Any) -> WorkerProcess:
        """Start a worker and wait until it works."""
        return (await self.start_many(1, **settings))[0]

    async def start_many(self, count: int, **settings: Any) -> list[WorkerProcess]:
        """Start workers at once and wait until all work."""
        workers = [self.launch(**settings) for _ in range(count)]
        for worker in workers:
            await self.entry("ready", pid=worker.pid)
        return workers

    async def entry(
        self, kind: str, *, job: str | None = None, pid: int | None = None, within: float = PATIENCE
    ) -> Entry:
        """Wait for a line in the ledger."""

        def found() -> list[Entry]:
            return [e for e in self.ledger.entries(kind, job=job) if pid in (None, e.pid)]

        return (await until(found, within=within, what=lambda: self._story(f"{kind} of job {job} in {pid}")))[
            0
        ]

    async def ended(
        self, store: Store, ids: Sequence[JobId], *, within: float = PATIENCE
    ) -> dict[JobId, StoredJob]:
        """Wait until all these jobs have a terminal record and return them."""

        async def done() -> dict[JobId, StoredJob]:
            records = await available(lambda: read_all(store, ids))
            return records if all(record.state.terminal for record in records.values()) else {}

        return await until(done, within=within, what=lambda: self._story(f"the end of {len(ids)} jobs"))

    def close(self) -> None:
        """End every process that is left."""
        for worker in self.workers:
            worker.close()

    def _story(self, wanted: str) -> str:
        tail = "\n".join(f"{w.pid}:\n{w.log[-2000:]}" for w in self.workers)
        return f"{wanted}\nledger: {self.ledger.entries()[-20:]}\n{tail}"


FleetAt: TypeAlias = Callable[[str], Fleet]


class Gate:
    """A file that jobs wait for."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def open(self) -> None:
        """Let them go on."""
        Path(self.path).touch()


async def read_all(store: Store, ids: Sequence[JobId]) -> dict[JobId, StoredJob]:
    """Read jobs by id; each must be there."""
    found: dict[JobId, StoredJob] = {}
    for first in range(0, len(ids), 1_000):
        found |= {job.id: job for job in await store.get(ids[first : first + 1_000])}
    assert len(found) == len(set(ids)), "a job is lost"
    return found
