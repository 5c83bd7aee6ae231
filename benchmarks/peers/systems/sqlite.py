"""Systems on SQLite."""

from __future__ import annotations

from benchmarks.peers.systems.base import System, duetime

ON_SQLITE: tuple[System, ...] = (
    duetime(
        "sqlite",
        pace=10_000,
        settings=(
            "defaults (WAL, synchronous=FULL); one at a time by the blocking call, as Huey's is, with the rate of "
            "`await task.enqueue()` in the notes"
        ),
        blocks=True,
    ),
    System(
        name="huey",
        title="Huey",
        engine="sqlite",
        adapter="huey",
        requirements=("huey==3.5.4",),
        settings="WAL with fsync=True, no results, one worker thread, idle poll from 0.01 to 0.05 s, scheduler each second",
        notes="Its periodic tasks are looked at once a minute.",
        pace=1_500,
        schedules=False,
        polls=True,
    ),
    System(
        name="apscheduler3",
        title="APScheduler 3, in process",
        engine="sqlite",
        adapter="apscheduler3",
        requirements=("apscheduler==3.11.3", "sqlalchemy==2.0.44"),
        settings="AsyncIOScheduler, SQLAlchemyJobStore (WAL, synchronous=FULL), misfire_grace_time=None, coalesce=True",
        notes="Job stores must not be shared by processes. All due jobs are taken out of the store before the first starts.",
        pace=300,
        in_process=True,
        processes=1,
    ),
    System(
        name="apscheduler4-sqlite",
        title="APScheduler 4, in process",
        engine="sqlite",
        adapter="apscheduler4",
        requirements=(
            "apscheduler==4.0.0a6",
            "aiosqlite==0.22.1",
            # It does not run with later ones.
            "anyio==4.9.0",
            "sniffio==1.3.1",
            "sqlalchemy==2.0.44",
        ),
        settings="SQLAlchemyDataStore on aiosqlite (WAL, synchronous=FULL), max_concurrent_jobs=100, max_running_jobs=None",
        notes="On SQLite no event crosses processes, and the store must not be shared. One-off jobs are schedules that come once.",
        pace=80,
        in_process=True,
        processes=1,
    ),
)
