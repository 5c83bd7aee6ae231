"""Systems on Redis."""

from __future__ import annotations

from benchmarks.peers.systems.base import System, duetime

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
        adapter="saq_redis",
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
            f"taken at once by whichever worker is there, and held in its memory. {_NO_SECONDS}"
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
            "Its scheduler is a process beside the worker, and looks each second. Due times are kept in seconds, so jobs may "
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
        notes="Jobs for later are taken at once by whichever worker is there, and held in its memory. It has no schedules.",
        schedules=False,
        pace=1_000,
        polls=True,
    ),
    System(
        name="huey-redis",
        title="Huey",
        engine="redis",
        adapter="huey_redis",
        requirements=("huey==3.5.4", "redis==8.1.0"),
        settings="no results, one worker thread, which waits for new jobs in the server, scheduler each second",
        notes="Its periodic tasks are looked at once a minute.",
        schedules=False,
        pace=1_500,
    ),
)
