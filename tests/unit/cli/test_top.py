from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from duetime import Scheduler, current_job
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
    (mail,) = [line for line in lines if line.startswith("mail ")]
    assert "paused: broken" in mail
    assert [job.task for job in view.running] == ["parse"]
    assert [job.queue for job in view.upcoming] == ["mail"]
    assert text.count("parse") == 2


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
