"""Schedules that many processes declare and fire while operators change them and workers die."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime

import pytest

from duetime import Scheduler, cron
from duetime.errors import ScheduleNotFound
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import SECOND, Instant, from_datetime
from duetime.testing import FakeClock
from tests.integration.kit import Fleet, until
from tests.integration.ledger import starts_by_job
from tests.integration.occurrences import stood_for
from tests.integration.tasks import App

STARTING = 8
DECLARED = {f"s{number:03}": f"{number % 10}/10 * * * * *" for number in range(200)}
PAUSED = [name for number, name in enumerate(DECLARED) if number % 4 == 0]
EDITED = [name for number, name in enumerate(DECLARED) if number % 4 == 1]

FIRING = 4
EVERY_SECOND = {f"tick{number:02}": "* * * * * *" for number in range(12)}
KILL_EVERY = 5
LONG, SHORT = 60, 10
"""Seconds: on a server, and on a file that processes share, where the same is shown in less time."""


async def change(app: App, name: str) -> None:
    """Do what an operator does as soon as there is something to do it to."""
    while True:
        try:
            if name in PAUSED:
                await app.scheduler.schedules.pause(name, reason="audit", by="alice")
            else:
                await app.scheduler.schedules.edit(name, priority=2, by="bob")
        except ScheduleNotFound:
            await asyncio.sleep(0.01)
        else:
            return


async def records(app: App, name: str, *, since: Instant, until: Instant) -> list[StoredJob]:
    """The records of a stretch of time, and the one behind it, which may stand for some of it as well."""
    return await app.scheduler.store.occurrences(name, since=since, until=until, limit=1_000)


@pytest.mark.no_tables
@pytest.mark.timeout(120)
@pytest.mark.covers("cold-start-race", "restart-resets-schedule", "occurrence-twice")
async def test_eight_processes_declare_two_hundred_schedules_while_operators_change_half_of_them(
    fleet: Fleet,
) -> None:
    app = fleet.app()
    async with app.scheduler:
        operators = asyncio.gather(*(change(app, name) for name in PAUSED + EDITED))
        await fleet.start_many(STARTING, declares=DECLARED, concurrency=20)
        await operators
        # Each unpaused one comes at least once more.
        since = len(fleet.ledger.entries("start"))
        await until(
            lambda: len(fleet.ledger.entries("start")) > since + len(DECLARED) - len(PAUSED),
            what="runs of all",
        )
        found = {one.name: one for one in await app.scheduler.schedules.list()}
        jobs = {job.id: job for name in DECLARED for job in await records(app, name, since=0, until=2**60)}
        histories = [await app.scheduler.schedules.history(name) for name in PAUSED]

    assert set(found) == set(DECLARED)
    assert {found[name].paused_by for name in PAUSED} == {"alice"}
    assert {found[name].state for name in PAUSED} == {"paused"}
    assert {found[name].priority for name in EDITED} == {2}
    assert {one.state for name, one in found.items() if name not in PAUSED} == {"active"}
    assert {tuple(change.verb for change in history) for history in histories} == {("pause", "declare")}
    started = Counter(entry.job for entry in fleet.ledger.entries("start") if entry.job in jobs)
    ran = Counter((jobs[job].schedule, jobs[job].occurrence) for job in started.elements())
    assert set(ran.values()) == {1}
    assert [worker.errors for worker in fleet.workers] == [[]] * STARTING


@pytest.mark.timeout(180)
@pytest.mark.covers("occurrence-twice", "schedule-dies-with-worker")
async def test_each_occurrence_has_one_record_though_a_process_is_killed_every_five_seconds(
    fleet: Fleet,
) -> None:
    length = LONG if fleet.url.startswith("postgres") else SHORT
    app = fleet.app()
    killed: set[int] = set()
    async with app.scheduler:
        workers = await fleet.start_many(FIRING, declares=EVERY_SECOND)
        begin = (from_datetime(datetime.now(UTC)) // SECOND + 1) * SECOND
        for _ in range(length // KILL_EVERY):
            await asyncio.sleep(KILL_EVERY)
            killed.add(workers[0].pid)
            workers.pop(0).kill()
            workers.append(fleet.launch(declares=EVERY_SECOND))
        end = begin + length * SECOND

        async def told() -> dict[str, list[StoredJob]]:
            found = {name: await records(app, name, since=begin, until=end) for name in EVERY_SECOND}
            whole = all(jobs and (jobs[-1].occurrence or 0) >= end for jobs in found.values())
            return found if whole and all(j.state.terminal for jobs in found.values() for j in jobs) else {}

        found = await until(told, what="the last occurrences")

    wanted = Counter(range(begin, end + 1, SECOND))
    for name, jobs in found.items():
        seconds = Counter(
            second for job in jobs for second in stood_for(job, SECOND) if begin <= second <= end
        )
        assert seconds == wanted, name
    starts = starts_by_job(fleet.ledger.entries())
    ran = [job for jobs in found.values() for job in jobs if job.state is State.SUCCEEDED]
    assert all(starts[job.id] for job in ran)
    # Only the death of the process that had started a job starts it again, noted or not.
    assert {entry.pid for job in ran for entry in starts[job.id][:-1]} <= killed
    skipped = [job for jobs in found.values() for job in jobs if job.state is State.SKIPPED]
    assert {job.reason for job in skipped} <= {"overlap", "misfire"}
    assert len(ran) > len(wanted) * len(EVERY_SECOND) // 2


def version(url: str, expression: str, *, clock: FakeClock | None = None) -> Scheduler:
    """A version of a program whose code declares one schedule."""
    scheduler = Scheduler(url, clock=clock)

    @scheduler.schedule(cron(expression), name="nightly")
    @scheduler.task(name="work")
    async def work() -> None: ...

    return scheduler


@pytest.mark.covers("restart-resets-schedule")
async def test_of_two_versions_that_are_deployed_the_later_start_wins_once(store_url: str) -> None:
    old, new, restarted = (version(store_url, text) for text in ("0 3 * * *", "0 4 * * *", "0 4 * * *"))
    async with old.worker(), new.worker(), restarted.worker():
        found = await new.schedules.get("nightly")
        changes = await new.schedules.history("nightly")
    assert "04:00" in found.description
    assert [(change.verb, "trigger" in change.detail) for change in changes] == [
        ("declare", True),
        ("declare", False),
    ]
    assert all(change.who.startswith("code ") for change in changes)


@pytest.mark.covers("restart-resets-schedule")
async def test_a_restart_drops_no_overdue_run_and_leaves_what_operators_have_changed(store_url: str) -> None:
    clock = FakeClock(datetime(2026, 3, 2, 12, tzinfo=UTC))
    async with version(store_url, "0 3 * * *", clock=clock) as first:
        await first.put_declared()
        await first.schedules.edit("nightly", trigger=cron("0 5 * * *"), priority=1)
        before = await first.schedules.get("nightly")
    clock.advance("2d")
    async with version(store_url, "0 3 * * *", clock=clock) as second:
        await second.put_declared()
        assert await second.schedules.get("nightly") == before
        await second.schedules.pause("nightly", by="alice")
        before = await second.schedules.get("nightly")
    async with version(store_url, "0 3 * * *", clock=clock) as third:
        await third.put_declared()
        assert await third.schedules.get("nightly") == before
    assert before.next_at == datetime(2026, 3, 3, 5, tzinfo=UTC)
    assert (before.priority, before.state, before.paused_by) == (1, "paused", "alice")


@pytest.mark.covers("restart-resets-schedule")
async def test_what_has_changed_in_the_code_is_applied_and_nothing_else(store_url: str) -> None:
    clock = FakeClock(datetime(2026, 3, 2, 12, tzinfo=UTC))
    async with version(store_url, "0 3 * * *", clock=clock) as first:
        await first.put_declared()
        await first.schedules.edit("nightly", priority=1)
        await first.schedules.pause("nightly", by="alice")
    async with version(store_url, "0 4 * * *", clock=clock) as second:
        await second.put_declared()
        found = await second.schedules.get("nightly")
    assert (found.next_at, found.priority) == (datetime(2026, 3, 3, 4, tzinfo=UTC), 1)
    assert (found.state, found.paused_by) == ("paused", "alice")
