"""SQLite files on the disk that holds temporary files."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import children
from benchmarks.limits import sqlite
from benchmarks.places.base import Places
from benchmarks.places.filling import prepare
from benchmarks.places.tables import KEEP, TIDY
from benchmarks.sizes import Sizes

_FLUSH = "PRAGMA wal_checkpoint(TRUNCATE)"


@dataclass(frozen=True, slots=True)
class _File:
    path: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    def keep(self) -> None:
        self._execute(KEEP, "ANALYZE", _FLUSH)

    def tidy(self) -> None:
        self._execute(*TIDY, _FLUSH)

    def _execute(self, *statements: str) -> None:
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)


@dataclass(frozen=True, slots=True)
class SqliteLimits:
    """What SQLite can do at best, in a folder of its own."""

    folder: str

    def inserts(self, sizes: Sizes) -> dict[str, float]:
        """Insert one by one, by callers at once, and in bulk."""
        found: dict[str, float] = children.run(
            sqlite.inserts, folder=self.folder, singles=sizes.singles, bulk=sizes.bulk
        )
        # SQLite has one writer: callers at once can only be compared with one caller.
        return {**found, "at_once": found["single"]}

    def drain(self, jobs: int, batch: int) -> float:
        """Run the bare loop."""
        return float(children.run(sqlite.drain, folder=self.folder, jobs=jobs, batch=batch))

    def round_trips(self, pings: int) -> float:
        """Make the round trips that no design can do without."""
        return float(children.run(sqlite.round_trips, folder=self.folder, pings=pings))


@contextmanager
def sqlite_places(future: int) -> Iterator[Places]:
    """Make files in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="duetime-bench-") as folder:
        empty, filled = (_File(Path(folder) / f"{name}.db") for name in ("empty", "filled"))
        prepare(empty, filled, future)
        facts = {"SQLite": sqlite3.sqlite_version, "settings": "WAL, synchronous=FULL"}
        yield Places(empty=empty, filled=filled, limits=SqliteLimits(folder), facts=facts)
