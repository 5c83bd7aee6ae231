"""The catalogue: which systems are measured, at which versions, with which settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Engine = Literal["sqlite", "postgres", "mariadb", "redis"]
ENGINES: tuple[Engine, ...] = ("sqlite", "postgres", "mariadb", "redis")
TITLES: dict[str, str] = {
    "sqlite": "SQLite",
    "postgres": "PostgreSQL",
    "mariadb": "MariaDB",
    "redis": "Redis",
}

_OURS = ("asyncmy==0.2.17", "asyncpg==0.32.0", "click==8.5.1", "msgspec==0.22.0", "redis==8.1.0")
"""What `pip install "duetime[mysql,postgres,redis]"` installs beside Duetime itself, which is run from its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One scheduler or queue on one kind of database."""

    name: str
    """As it stands in tables, on the command line and in file names."""
    title: str
    engine: Engine
    adapter: str
    """The module in `benchmarks.peers.systems`, and its class if that is not `Adapter`."""
    requirements: tuple[str, ...]
    """Exact pins."""
    settings: str
    """Part of a sentence for the report."""
    notes: str = ""
    width: str = "concurrency"
    """The name of its main setting."""
    widths: tuple[int, ...] = (100,)
    """Values of that setting that a drain is tried with; its best one counts."""
    pace: int = 1_000
    """One-off jobs a second that it surely stores; what is due later is put that much earlier."""
    in_process: bool = False
    """True where jobs can only be added in the process that runs them."""
    processes: int = 2
    """Worker processes that can share the work."""
    schedules: bool = True
    """False where it has none that come every few seconds; its adapter refuses them."""
    polls: bool = False
    """True where a shorter poll than the default one is used for everything but the idle cost."""
    blocks: bool = False
    """True where jobs are put one at a time by a call that blocks, though there is one to await; that is noted beside it."""
    ours: bool = False

    @property
    def configuration(self) -> str:
        """One sentence for the report, without its end."""
        if len(self.widths) == 1:
            return self.settings
        tried = " and ".join(f"{width:,}" for width in self.widths)
        return f"{self.settings}; drain with {self.width} {tried}, the better one counts"

    @property
    def environment(self) -> str:
        """The name of its own virtual environment."""
        return self.adapter.replace(":", "-")


def duetime(engine: Engine, *, pace: int, settings: str = "defaults", blocks: bool = False) -> System:
    """Return our own system on one kind of database."""
    return System(
        name=f"duetime-{engine}",
        title="Duetime",
        engine=engine,
        adapter="duetime",
        requirements=_OURS,
        settings=settings,
        widths=(100, 1_000),
        pace=pace,
        blocks=blocks,
        ours=True,
    )


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


ON_POSTGRES: tuple[System, ...] = (
    duetime("postgres", pace=10_000),
    System(
        name="procrastinate",
        title="Procrastinate",
        engine="postgres",
        adapter="procrastinate",
        requirements=("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.8", "psycopg-pool==3.3.3"),
        settings=(
            "listen/notify, fetch_job_polling_interval=0.01, delete_jobs=successful, pools of 20 connections"
        ),
        notes=(
            "The poll is for jobs that fall due: notifications tell of new ones only. More than 100 jobs at once bring "
            "nothing, since they are fetched one by one. Schedules are cron rules, deferred half a second late on purpose."
        ),
        widths=(10, 100),
        pace=300,
        polls=True,
    ),
    System(
        name="pgqueuer",
        title="PgQueuer",
        engine="postgres",
        adapter="pgqueuer",
        requirements=("pgqueuer[asyncpg]==1.6.0", "asyncpg==0.32.0"),
        settings=(
            "durable tables, autovacuum as `pgq autovac` sets it, a pool of 20 connections to enqueue and one connection "
            "to work, as its guide to tuning says"
        ),
        notes=(
            "It waits for the next due time by itself, so there is no poll to shorten. Schedules are cron rules, which it "
            "looks at a second late on purpose."
        ),
        width="batch_size",
        widths=(100, 1_000),
        pace=5_000,
    ),
    System(
        name="apscheduler4-postgres",
        title="APScheduler 4",
        engine="postgres",
        adapter="apscheduler4:OnPostgres",
        requirements=(
            "apscheduler==4.0.0a6",
            # It does not run with later ones.
            "anyio==4.9.0",
            "asyncpg==0.32.0",
            "sniffio==1.3.1",
            "sqlalchemy[asyncio]==2.0.44",
        ),
        settings=(
            "SQLAlchemyDataStore and AsyncpgEventBroker, pools of 20 connections, max_concurrent_jobs=100, "
            "max_running_jobs=None"
        ),
        notes=(
            "By default one job of a task runs at a time; here any number. Events wake it, so there is no poll to shorten. "
            "One-off jobs are schedules that come once."
        ),
        pace=100,
    ),
    System(
        name="dbos",
        title="DBOS",
        engine="postgres",
        adapter="dbos",
        requirements=("dbos==3.3.0", "psycopg[binary]==3.3.8", "sqlalchemy==2.1.8"),
        settings=(
            "one queue with polling_interval_sec=0.01, asynchronous workflows, pools of 20 connections, a thread for each "
            "of 32 callers"
        ),
        notes=(
            "Bulk means many enqueues in one transaction. Jobs are durable workflows and stay in the database. Delayed "
            "ones are looked for once a second, which cannot be set. Each schedule is a thread with a jitter of its own."
        ),
        width="worker_concurrency",
        widths=(100, 1_000),
        pace=150,
        polls=True,
    ),
    System(
        name="saq",
        title="SAQ",
        engine="postgres",
        adapter="saq:OnPostgres",
        requirements=("saq[postgres]==0.26.4", "psycopg[binary,pool]==3.3.8", "psycopg-pool==3.3.3"),
        settings=(
            "listen/notify, ttl=-1 (finished jobs are deleted), schedule timer 0.1 s, pools of 20 connections"
        ),
        notes=(
            "Due times are rounded to full seconds, so jobs may start half a second early. With its own poll_interval "
            "it would not listen, and start new jobs later. Schedules are cron rules."
        ),
        widths=(100, 1_000),
        pace=400,
        polls=True,
    ),
)


ON_MARIADB: tuple[System, ...] = (duetime("mariadb", pace=5_000),)


_NO_SECONDS = "Its intervals begin when its scheduler does, and its cron rules go by the minute."

ON_REDIS: tuple[System, ...] = (
    duetime("redis", pace=10_000),
    System(
        name="arq",
        title="arq",
        engine="redis",
        adapter="arq",
        requirements=("arq==0.28.0", "redis[hiredis]==5.3.1"),
        settings="poll_delay=0.01, keep_result=0, max_jobs=100",
        notes=(
            "More than 100 jobs at once bring nothing, since each is taken by several calls of its own. Due times are kept "
            "in milliseconds, so jobs may start one early. Schedules are cron rules."
        ),
        pace=500,
        polls=True,
    ),
    System(
        name="saq-redis",
        title="SAQ",
        engine="redis",
        adapter="saq:OnRedis",
        requirements=("saq[redis]==0.26.4", "redis==7.4.1", "typing-extensions==4.16.0"),
        settings="ttl=-1 (finished jobs are deleted), concurrency 100",
        notes=(
            "It waits for new jobs in the server, and looks for those that have fallen due once a second, which cannot be "
            "made shorter on Redis. Schedules are cron rules."
        ),
        pace=800,
    ),
    System(
        name="taskiq",
        title="taskiq",
        engine="redis",
        adapter="taskiq",
        requirements=("taskiq==0.13.0", "taskiq-redis==1.2.4", "redis==8.1.0"),
        settings=(
            "RedisStreamBroker, the one that acknowledges and loses no job of a worker that dies, without results, "
            "max_async_tasks=100; ListRedisScheduleSource, whose scheduler runs in the worker and looks each second"
        ),
        notes=_NO_SECONDS,
        schedules=False,
        pace=500,
        polls=True,
    ),
    System(
        name="streaq",
        title="streaQ",
        engine="redis",
        adapter="streaq",
        requirements=("streaq==7.2.0", "coredis==6.9.0"),
        settings="ttl=0 (no results), silent tasks, concurrency 100",
        notes=(
            "It looks for jobs that have fallen due twice a second, which cannot be set. Due times are kept in milliseconds, "
            "so jobs may start one early. Schedules are cron rules, whose handlers are not told when they were due."
        ),
        pace=1_000,
    ),
    System(
        name="celery",
        title="Celery",
        engine="redis",
        adapter="celery",
        requirements=("celery[redis]==5.7.0", "kombu==5.7.0", "redis==8.1.0"),
        settings=(
            "prefork pool with one child, prefetch multiplier 100, no results, no remote control, gossip, mingle or heartbeat"
        ),
        notes=(
            "The solo pool drains a tenth faster, and starts no more than some jobs a second of a burst. Jobs for later are "
            f"taken at once by any worker, and held in its memory. {_NO_SECONDS}"
        ),
        schedules=False,
        pace=500,
    ),
    System(
        name="rq",
        title="RQ",
        engine="redis",
        adapter="rq",
        requirements=("rq==2.12.0", "redis==8.1.0"),
        settings="SimpleWorker (no fork for each job), with_scheduler, result_ttl=0",
        notes=(
            "Its scheduler is another process next to the worker, and looks each second. Due times are kept in seconds, so jobs may "
            f"start up to one early. {_NO_SECONDS}"
        ),
        schedules=False,
        pace=300,
    ),
    System(
        name="dramatiq",
        title="Dramatiq",
        engine="redis",
        adapter="dramatiq",
        requirements=("dramatiq[redis]==2.2.1", "redis==8.1.0"),
        settings="8 threads, worker_timeout=10 (the longest poll, in milliseconds)",
        notes="Jobs for later are taken at once by any worker, and held in its memory. It has no schedules.",
        schedules=False,
        pace=1_000,
        polls=True,
    ),
    System(
        name="huey-redis",
        title="Huey",
        engine="redis",
        adapter="huey:OnRedis",
        requirements=("huey==3.5.4", "redis==8.1.0"),
        settings="no results, one worker thread, which waits for new jobs in the server, scheduler each second",
        notes="Its periodic tasks are looked at once a minute.",
        schedules=False,
        pace=1_500,
    ),
)


SYSTEMS: tuple[System, ...] = (*ON_SQLITE, *ON_POSTGRES, *ON_MARIADB, *ON_REDIS)


def named(name: str) -> System:
    """Return a system of the catalogue."""
    return next(system for system in SYSTEMS if system.name == name)
