"""What databases that have a server share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from benchmarks import children
from benchmarks.places.base import Places
from benchmarks.places.filling import prepare
from benchmarks.places.tables import KEEP, TIDY
from benchmarks.sizes import Sizes
from tools.servers import MariaDbServer, PostgresServer


@dataclass(frozen=True, slots=True)
class ServedLimits:
    """What a server can do at best, in a database of its own, by one of the modules in `benchmarks.limits`."""

    bare: ModuleType
    url: str

    def inserts(self, sizes: Sizes) -> dict[str, float]:
        """Insert one by one, by callers at once, and in bulk."""
        found: dict[str, float] = children.run(
            self.bare.inserts, url=self.url, singles=sizes.singles, at_once=sizes.at_once, bulk=sizes.bulk
        )
        return found

    def drain(self, jobs: int, batch: int) -> float:
        """Run the bare loop."""
        return float(children.run(self.bare.drain, url=self.url, jobs=jobs, batch=batch))

    def round_trips(self, pings: int) -> float:
        """Make the round trips that no design can do without."""
        return float(children.run(self.bare.round_trips, url=self.url, pings=pings))


@dataclass(frozen=True, slots=True)
class _Database:
    server: MariaDbServer | PostgresServer
    name: str
    flush: tuple[str, ...]

    @property
    def url(self) -> str:
        return self.server.url(self.name)

    def keep(self) -> None:
        self._execute(KEEP, *self.flush)

    def tidy(self) -> None:
        self._execute(*TIDY, *self.flush)

    def _execute(self, *statements: str) -> None:
        for statement in statements:
            self.server.execute(statement, database=self.name)


def table_places(
    server: MariaDbServer | PostgresServer,
    future: int,
    *,
    flush: tuple[str, ...],
    limits: Callable[[str], ServedLimits],
    facts: dict[str, str],
) -> Places:
    """Make databases in a server that runs; `flush` writes everything out and gathers statistics."""
    for name in ("empty", "filled", "bare"):
        server.create_database(name)
    empty, filled = (_Database(server, name, flush) for name in ("empty", "filled"))
    prepare(empty, filled, future)
    return Places(
        empty=empty,
        filled=filled,
        limits=limits(server.url("bare")),
        facts=facts,
        server=server.pid,
    )
