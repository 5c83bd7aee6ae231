"""What a storm does to workers, their connections and their server."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import Final

from tests.integration import ledger
from tests.integration.kit import Fleet, WorkerProcess
from tests.integration.storm.judge import FROZEN, KILLED, THAWED
from tests.support.proxy import Proxy, before
from tools.servers import MariaDbServer, PostgresServer, RedisServer

STORES: Final = ("sqlite", "postgres", "mariadb", "redis")
CLOCKS: Final = (-90, 0, 90)
"""Seconds by which the clock of a worker's host is wrong."""
OUTAGES: Final = (0.2, 1.0, 3.0, 4.0, 8.0)
"""Seconds for which connections are refused or stalled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a storm takes place."""

    url: str
    kill: Callable[[], None] | None = None
    """Ends the server at once; `None` where there is no server."""
    start: Callable[[], None] = lambda: None


@contextmanager
def ground(store: str, folder: Path) -> Iterator[Ground]:
    """Open an empty store whose server can be killed and keeps what it has acknowledged."""
    if store == "sqlite":
        yield Ground(url=f"sqlite:///{folder / 'storm.db'}")
    elif store == "postgres":
        with PostgresServer(fsync=False) as postgres:
            url = postgres.create_database("storm")
            yield Ground(url=url, kill=lambda: postgres.stop("immediate"), start=postgres.start)
    elif store == "mariadb":
        with MariaDbServer(fsync=False) as mariadb:
            yield Ground(url=mariadb.create_database("storm"), kill=mariadb.kill, start=mariadb.start)
    else:
        # With `everysec` the last second before a kill may be lost, as the docs say.
        with RedisServer("--appendfsync", "always") as redis:
            yield Ground(url=redis.url(), kill=redis.kill, start=redis.start)


class Site:
    """One worker after another, each in the place of the one that was killed, with a connection that can be cut."""

    def __init__(self, fleet: Fleet, *, number: int, lease: float, seed: int, counts: Counter[str]) -> None:
        self._fleet = fleet
        self._number = number
        self._lease = lease
        self._random = random.Random(f"{seed}/{number}")
        self._counts = counts
        self._stack = ExitStack()
        self._proxy: Proxy | None = None
        if not fleet.url.startswith("sqlite"):
            self._proxy = self._stack.enter_context(before(fleet.url))
        self._worker = self._launch()

    async def suffer(self, ends: asyncio.Event) -> None:
        """Go through one fault after another until the storm ends."""
        local = [self._kill] * 4 + [self._pause] * 2 + [self._freeze]
        cuts = [self._reset, self._refuse, self._swallow, self._stall] if self._proxy else []
        faults: list[Callable[[], Awaitable[None]]] = [*local, *cuts, *cuts]
        while not await passed(ends, self._random.uniform(0.3, 2)):
            await self._random.choice(faults)()

    def close(self) -> None:
        """Take the connection away."""
        self._stack.close()

    def _launch(self) -> WorkerProcess:
        # Processes that share a file share a host, and so its clock.
        clock = self._random.choice(CLOCKS) if self._proxy else 0
        self._counts["clocks that are off"] += clock != 0
        # Every other site seems to be another host: only the end of its lease tells that a worker is dead.
        host_key = f"host-{self._number}" if self._number % 2 else None
        url = self._fleet.url if self._proxy is None else self._proxy.url(self._fleet.url)
        schedules = {f"tick{n}": "* * * * * *" for n in range(3)}
        return self._fleet.launch(
            url=url,
            clock_offset=clock,
            host_key=host_key,
            declares=schedules,
            lease=self._lease,
            concurrency=10,
        )

    async def _kill(self) -> None:
        self._tell(KILLED, "kills")
        self._worker.kill()
        self._worker = self._launch()

    async def _pause(self) -> None:
        await self._stop_for(self._random.uniform(0.1, 0.6) * self._lease, "short stops")

    async def _freeze(self) -> None:
        await self._stop_for(self._random.uniform(1.2, 2) * self._lease, "stops past the lease")

    async def _stop_for(self, seconds: float, what: str) -> None:
        self._tell(FROZEN, what)
        self._worker.signal(SIGSTOP)
        await asyncio.sleep(seconds)
        self._worker.signal(SIGCONT)
        self._tell(THAWED)

    async def _reset(self) -> None:
        self._counts["resets"] += 1
        self._line.reset()

    async def _refuse(self) -> None:
        self._counts["refusals"] += 1
        self._line.refuse()
        await asyncio.sleep(self._random.choice(OUTAGES))
        self._line.accept()

    async def _swallow(self) -> None:
        self._counts["black holes"] += 1
        self._line.swallow()

    async def _stall(self) -> None:
        self._counts["stalls"] += 1
        self._line.stall()
        await asyncio.sleep(self._random.choice(OUTAGES))
        self._line.resume()

    @property
    def _line(self) -> Proxy:
        assert self._proxy is not None
        return self._proxy

    def _tell(self, kind: str, what: str | None = None) -> None:
        ledger.write(kind, job=str(self._worker.pid))
        if what is not None:
            self._counts[what] += 1


async def kill_server(ground: Ground, ends: asyncio.Event, *, seed: int, counts: Counter[str]) -> None:
    """Kill the server and start it again, every ten seconds or so until the storm ends."""
    chance = random.Random(f"{seed}/server")
    while ground.kill is not None and not await passed(ends, chance.uniform(4, 16)):
        counts["server kills"] += 1
        await asyncio.to_thread(ground.kill)
        await asyncio.sleep(chance.uniform(0, 2))
        await asyncio.to_thread(ground.start)


async def passed(ends: asyncio.Event, seconds: float) -> bool:
    """Wait for some time, but no longer than until the end of the storm, and say whether that has come."""
    try:
        await asyncio.wait_for(ends.wait(), seconds)
    except TimeoutError:
        return False
    return True
