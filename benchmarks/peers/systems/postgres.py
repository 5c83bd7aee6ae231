"""Systems on PostgreSQL."""

from __future__ import annotations

from benchmarks.peers.systems.base import System, duetime

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
        adapter="apscheduler4_postgres",
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
        adapter="saq_postgres",
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
