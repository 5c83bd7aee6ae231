from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from duetime import Scheduler, current_job, every
from duetime.cli.top import TopView, read_view, view_lines, view_values


@pytest_asyncio.fixture
async def scheduler(tmp_path: Path) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(f"sqlite:///{tmp_path}/jobs.db")
    async with scheduler:
        yield scheduler


async def seen(scheduler: Scheduler) -> TopView:
    """A look at one paused queue, one running job with progress, and one that comes next."""

    @scheduler.task(name="parse")
    async def parse() -> None:
        await current_job().progress(0.4, "half\x1b[2J way")
        views.append(await read_view(scheduler))

    views: list[TopView] = []
    async with scheduler.worker():
        await scheduler.queues.pause("mail", reason="broken")
        await parse.options(delay="1h", queue="mail").enqueue()
        await (await parse.enqueue()).result(timeout=10)
    return views[0]


async def test_a_look_shows_queues_workers_running_jobs_and_what_comes_next(scheduler: Scheduler) -> None:
    view = await seen(scheduler)
    lines = list(view_lines(view, width=200))
    text = "\n".join(lines)
    assert "1 workers" not in text
    assert "1 worker, 1 of 100 slots taken" in lines[0]
    (worker,) = view.workers
    (row,) = [line for line in lines if line.startswith(worker.id)]
    assert "  1/100  " in row
    (mail,) = [line for line in lines if line.startswith("mail ")]
    assert "paused: broken" in mail
    assert [job.task for job in view.running] == ["parse"]
    assert [job.queue for job in view.upcoming] == ["mail"]
    assert text.count("parse") == 2


async def test_what_schedules_will_make_is_next_too(scheduler: Scheduler) -> None:
    @scheduler.task(name="tidy", queue="slow")
    def tidy() -> None: ...

    hour, now = timedelta(hours=1), datetime.now(UTC)
    rules = {
        "hourly": every("1h", start=now + 2.5 * hour),
        "paused": every("1h", start=now + hour),
        "spread": every("3h", start=now + 3 * hour).jitter("1h"),
    }
    for name, rule in rules.items():
        await scheduler.schedules.put(name, rule, tidy)
    await scheduler.schedules.pause("paused")
    stored = await tidy.options(delay="90m").enqueue()

    view = await read_view(scheduler)
    assert [(run.schedule, run.job) for run in view.upcoming] == [
        (None, stored.id),
        ("hourly", None),
        ("spread", None),
    ]
    assert now + 3 * hour < view.upcoming[2].due_at < now + 4 * hour
    lines = list(view_lines(view, width=200))
    assert lines[-3].split() == ["in", "1h", "tidy", "slow", stored.id]
    assert lines[-2].split() == ["in", "2h", "tidy", "slow", "hourly", "not", "made", "yet"]


async def test_more_jobs_than_are_read_are_counted_as_workers_said(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetime.cli.top._MOST_RUNNING", 1)
    started = [asyncio.Event(), asyncio.Event()]

    @scheduler.task(name="wait")
    async def wait(number: int) -> None:
        started[number].set()
        await asyncio.Event().wait()

    async with scheduler.worker(grace=0):
        await scheduler.enqueue_many([wait.call(0), wait.call(1)])
        for one in started:
            await one.wait()
        view = await read_view(scheduler)
    (worker,) = view.workers
    assert f"{worker.running} of 100 slots" in next(view_lines(view, width=200))
    assert worker.running in {0, 2}, "as the heartbeat says, not 1 as was read"


async def test_no_line_is_wider_than_the_terminal(scheduler: Scheduler) -> None:
    view = await seen(scheduler)
    assert max(map(len, view_lines(view, width=200))) > 40
    assert max(map(len, view_lines(view, width=40))) == 40


async def test_nothing_that_a_terminal_would_obey_is_shown(scheduler: Scheduler) -> None:
    view = await seen(scheduler)
    assert all(line.isprintable() for line in view_lines(view, width=200))


async def test_an_empty_store_has_a_view_too(scheduler: Scheduler) -> None:
    lines = list(view_lines(await read_view(scheduler), width=80))
    assert "0 workers, 0 of 0 slots taken" in lines[0]


@pytest.mark.parametrize("part", ["queues", "workers", "running", "upcoming"])
async def test_a_view_is_json_too(scheduler: Scheduler, part: str) -> None:
    values = view_values(await seen(scheduler))
    assert isinstance(values, dict)
    assert len(values[part]) >= 1
