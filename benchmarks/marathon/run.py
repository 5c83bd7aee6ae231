"""Stores the jobs, lets one worker process drain them, and judges what was seen of it and of the database."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import mmap
import sqlite3
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks import children
from benchmarks.ledger import WrongRun
from benchmarks.processes import memory
from duetime import Scheduler
from duetime.model.states import State
from duetime.scheduler.task import AsyncTask
from tools.servers import PostgresServer

_QUARTERS = 4
_MEMORY_SHARE, _MEMORY_ROOM = 1.05, 3.0
"""How much more memory the last quarter may take than the second: this share, or so many megabytes."""
_RATE = 0.85
_LOG = 1.5
_SLACK = 1.1


class Sample(NamedTuple):
    """One look, a second or less after the one before."""

    seconds: float
    done: int
    memory: float
    """Of the worker, in megabytes, as its fair share."""
    table: float
    """Of the records and their indexes, in megabytes."""
    log: float
    """Of the write-ahead log as it lies on the disk, in megabytes."""
    dead: int = 0
    """Versions of rows that wait for vacuum, as the server knows."""


class Room(NamedTuple):
    """What the records take in the end, in megabytes."""

    end: float
    """When the last one was settled."""
    fresh: float
    """In a copy that was written anew."""
    encore: float
    """By how much the database grew when a tenth as many jobs more were drained, after a vacuum."""
    encore_fresh: float
    """How much those records take in a copy."""


class Bounds(NamedTuple):
    """What holds for an engine."""

    versions: float
    """How many versions of a row there may be at once, on average: PostgreSQL writes a new one with every change."""
    log: float
    """Up to what size the log may grow by design, in megabytes."""
    splits: float = 1.0
    """How much more than a copy pages may take whose rows have grown: where they do so in place, full pages are split."""


class Verdict(NamedTuple):
    """One question, its answer, and the figures behind it."""

    title: str
    holds: bool
    because: str


@dataclass(frozen=True, slots=True)
class Quarter:
    """The samples of a quarter of the jobs."""

    samples: tuple[Sample, ...]

    def median(self, figure: Callable[[Sample], float]) -> float:
        """Return the middle one of a figure."""
        return statistics.median(map(figure, self.samples))

    @property
    def rate(self) -> float:
        """Jobs per second, from the first of its looks to the last."""
        first, last = self.samples[0], self.samples[-1]
        took = last.seconds - first.seconds
        return (last.done - first.done) / took if took else 0.0

    @property
    def log(self) -> float:
        """The largest log."""
        return max(sample.log for sample in self.samples)


class TooShort(Exception):
    """The drain was over before four quarters could be told apart."""


def quarters(samples: Sequence[Sample], jobs: int) -> list[Quarter]:
    """Split the looks by how many of the jobs were done."""
    found = [
        tuple(sample for sample in samples if min(sample.done, jobs - 1) * _QUARTERS // jobs == n)
        for n in range(_QUARTERS)
    ]
    if any(len(each) < 2 for each in found[1:]):
        raise TooShort(
            f"{len(samples)} looks at {jobs:,} jobs are too few to compare quarters; use more jobs"
        )
    return [Quarter(each) for each in found]


def judge(parts: Sequence[Quarter], room: Room, bounds: Bounds) -> list[Verdict]:
    """Hold the last quarter to the second, and what the records take to what they need."""
    second, last = parts[1], parts[3]
    before, after = (part.median(lambda sample: sample.memory) for part in (second, last))
    most = max(before * _MEMORY_SHARE, before + _MEMORY_ROOM)
    log = max(second.log * _LOG, bounds.log)
    bloat = room.end / room.fresh
    return [
        Verdict("memory is flat", after <= most, f"{before:.1f} MB in the second quarter, {after:.1f} in the last"),
        Verdict(
            "the rate lasts",
            last.rate >= second.rate * _RATE,
            f"{second.rate:,.0f} jobs a second in the second quarter, {last.rate:,.0f} in the last",
        ),
        Verdict("the log is bounded", last.log <= log, f"{last.log:.0f} MB at most in the last quarter, bound {log:.0f}"),
        Verdict(
            "records take what they need",
            bloat <= bounds.versions * _SLACK,
            f"{room.end:.0f} MB at the end, {room.fresh:.0f} in a fresh copy: {bloat:.2f} times, "
            f"bound {bounds.versions * _SLACK:.2f}",
        ),
        Verdict(
            "room is used again",
            room.encore <= room.encore_fresh * bounds.splits * _SLACK,
            f"{room.encore:.1f} MB more after a vacuum and a tenth as many jobs again, "
            f"which take {room.encore_fresh:.1f} in a fresh copy",
        ),
    ]  # fmt: skip


_COUNT = struct.Struct("<q")


class Tally:
    """One byte for each job, behind their number."""

    def __init__(self, path: Path, jobs: int) -> None:
        if not path.exists():
            path.write_bytes(bytes(_COUNT.size + jobs))
        self._jobs = jobs
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        # Read whole once, so that its pages do not count as memory that grows.
        self._done = bytes(self._map).count(b"\x01")

    def mark(self, number: int) -> None:
        """Note that a job ran."""
        place = _COUNT.size + number
        self._map[place] = min(2, self._map[place] + 1)
        self._done += 1
        _COUNT.pack_into(self._map, 0, self._done)

    @property
    def done(self) -> int:
        """How many runs there were."""
        count: int = _COUNT.unpack_from(self._map, 0)[0]
        return count

    def check(self) -> None:
        """Raise unless every job ran once."""
        marks = self._map[_COUNT.size :]
        if marks.count(1) != self._jobs:
            raise WrongRun(
                f"of {self._jobs:,} jobs {marks.count(0)} did not run and {marks.count(2)} ran more than once"
            )

    def close(self) -> None:
        """Let go of the file."""
        self._map.close()


_MB = 1024 * 1024
_DATABASE = "marathon"
_SIZES = """
SELECT pg_total_relation_size('duetime_jobs'),
       (SELECT sum(size) FROM pg_ls_waldir()),
       (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'duetime_jobs')
"""
_WRITTEN = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"


class Extent(NamedTuple):
    """How large things are, in megabytes."""

    table: float
    log: float
    dead: int = 0


class Database(Protocol):
    """A database to drain."""

    @property
    def url(self) -> str:
        """Its address."""

    @property
    def facts(self) -> str:
        """Version and settings."""

    @property
    def bounds(self) -> Bounds:
        """What holds for it."""

    def extent(self) -> Extent:
        """Return how large it is now."""

    def written(self) -> float | None:
        """Return how many megabytes of log were ever written, where that is known."""

    def vacuum(self) -> None:
        """Make the room of what is gone usable, as the database does by itself sooner or later."""

    def fresh(self) -> float:
        """Return how many megabytes the records take when they are written anew; the database may be rewritten by it."""


class _File:
    facts = f"SQLite {sqlite3.sqlite_version}, WAL, synchronous=FULL"
    # Rows are changed in place. The log is begun anew after 4 MB, or a little later when someone reads.
    bounds = Bounds(versions=1.25, log=16.0, splits=1.25)

    def __init__(self, folder: Path) -> None:
        self._path = folder / "marathon.db"
        self.url = f"sqlite:///{self._path}"

    def extent(self) -> Extent:
        log = self._path.with_name(f"{self._path.name}-wal")
        return Extent(_size(self._path), _size(log))

    def written(self) -> None:
        return None

    def vacuum(self) -> None:
        self._execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def fresh(self) -> float:
        copy = self._path.with_name("copy.db")
        copy.unlink(missing_ok=True)
        self._execute(f"VACUUM INTO '{copy}'")
        return _size(copy)

    def _execute(self, statement: str) -> None:
        with contextlib.closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            connection.execute(statement)


class _Server:
    # Stored, claimed, settled: three versions of each row, if nothing is vacuumed on the way. The log is kept for two
    # checkpoints, which come at the latest when a gigabyte was written.
    bounds = Bounds(versions=3.0, log=1024.0 * 1.2)

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.url = server.create_database(_DATABASE)

    @property
    def facts(self) -> str:
        return f"PostgreSQL {self._execute('SHOW server_version')}, fsync on, stock settings"

    def extent(self) -> Extent:
        table, log, dead = self._execute(_SIZES).split("|")
        return Extent(int(table) / _MB, int(log) / _MB, int(dead or 0))

    def written(self) -> float:
        return int(self._execute(_WRITTEN)) / _MB

    def vacuum(self) -> None:
        self._execute("VACUUM ANALYZE duetime_jobs")

    def fresh(self) -> float:
        self._execute("VACUUM FULL duetime_jobs")
        return self.extent().table

    def _execute(self, statement: str) -> str:
        return self._server.execute(statement, database=_DATABASE)


@contextmanager
def sqlite() -> Iterator[Database]:
    """Make a SQLite file on the disk that holds temporary files."""
    with tempfile.TemporaryDirectory(prefix="duetime-marathon-") as folder:
        yield _File(Path(folder))


@contextmanager
def postgres() -> Iterator[Database]:
    """Start a durable PostgreSQL with its stock settings."""
    with PostgresServer(fsync=True) as server:
        yield _Server(server)


DATABASES = {"sqlite": sqlite, "postgres": postgres}


def _size(path: Path) -> float:
    return path.stat().st_size / _MB if path.exists() else 0.0


_LOOK = 1.0
_SHORTEST_LOOK = 0.2
_STALLED = 60.0
"""Seconds after which a drain that makes no progress is given up."""
_BATCH = 5_000
_ENCORE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Marathon:
    """What came of it on one engine."""

    engine: str
    facts: str
    jobs: int
    samples: tuple[Sample, ...]
    parts: tuple[Quarter, ...]
    room: Room
    written: float | None
    """Megabytes of log while the jobs were drained."""
    verdicts: tuple[Verdict, ...]


def run(engine: str, *, jobs: int) -> Marathon:
    """Store and drain, and judge; raises when a job was lost or ran twice."""
    # A short one is looked at more often, so that its quarters can be told apart.
    look = max(_SHORTEST_LOOK, min(_LOOK, _LOOK * jobs / 1_000_000))
    with DATABASES[engine]() as database, tempfile.TemporaryDirectory(prefix="duetime-marathon-") as folder:
        children.run(fill, url=database.url, jobs=jobs)
        database.vacuum()
        written = database.written()
        samples = drained(database, Path(folder) / "tally", jobs, look)
        if written is not None:
            written = (database.written() or 0.0) - written
        room = room_of(database, Path(folder) / "encore", jobs, look)
        parts = quarters(samples, jobs)
        return Marathon(
            engine=engine,
            facts=database.facts,
            jobs=jobs,
            samples=tuple(samples),
            parts=tuple(parts),
            room=room,
            written=written,
            verdicts=tuple(judge(parts, room, database.bounds)),
        )


def drained(database: Database, file: Path, jobs: int, look: float) -> list[Sample]:
    """Let a worker process drain jobs, and return what was seen meanwhile; each job must have run once."""
    tally = Tally(file, jobs)
    samples: list[Sample] = []
    with children.started(drain, url=database.url, file=str(file), jobs=jobs) as worker:
        worker.wait_ready()
        began = moved = time.monotonic()
        while tally.done < jobs:
            time.sleep(look)
            extent, now = database.extent(), time.monotonic()
            if not samples or samples[-1].done < tally.done:
                moved = now
            elif now - moved > _STALLED:
                raise WrongRun(f"nothing has run for {_STALLED:.0f} s after {tally.done:,} jobs")
            # What is still to be settled when the last job has run is no part of the drain.
            if tally.done < jobs:
                samples.append(Sample(now - began, tally.done, memory(worker.pid), *extent))
        succeeded = worker.finish()
    tally.check()
    tally.close()
    if succeeded < jobs:
        raise WrongRun(f"{jobs:,} jobs ran, the store has {succeeded:,} as succeeded")
    return samples


def room_of(database: Database, file: Path, jobs: int, look: float) -> Room:
    """Compare what the records take with a copy, and see whether a few more use the room that is free."""
    more = max(1, jobs // _ENCORE)
    end = database.extent().table
    database.vacuum()
    before = database.extent().table
    children.run(fill, url=database.url, jobs=more)
    drained(database, file, more, look)
    database.vacuum()
    grown = max(0.0, database.extent().table - before)
    fresh = database.fresh()
    share = more / (jobs + more)
    return Room(end=end, fresh=fresh * (1 - share), encore=grown, encore_fresh=fresh * share)


class _Runner:
    def __init__(self, url: str, tally: Tally | None) -> None:
        # Which database this is stands in the report.
        logging.getLogger("duetime.stores").setLevel(logging.ERROR)
        self.scheduler = Scheduler(url)

        @self.scheduler.task(name="benchmarks.mark")
        async def mark(number: int) -> None:
            assert tally is not None
            tally.mark(number)

        self.mark: AsyncTask[[int], None] = mark


async def fill(*, url: str, jobs: int) -> None:
    """In a process of its own: store jobs that are due."""
    runner = _Runner(url, None)
    async with runner.scheduler as scheduler:
        for first in range(0, jobs, _BATCH):
            numbers = range(first, min(jobs, first + _BATCH))
            await scheduler.enqueue_many([runner.mark.call(n) for n in numbers])


async def drain(*, url: str, file: str, jobs: int) -> int:
    """In a process of its own: work until told to finish, and return how many jobs the store has as succeeded."""
    runner = _Runner(url, Tally(Path(file), jobs))
    async with runner.scheduler as scheduler:
        async with scheduler.worker(concurrency=100):
            await asyncio.to_thread(children.ready_then_wait)
        counts = await scheduler.store.counts()
    return sum(n for (_, state), n in counts.items() if state is State.SUCCEEDED)
