"""Jobs start and schedules fire even if nobody tells the worker that they may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from duetime import Scheduler, every
from duetime.runtime.claiming import fetcher as fetcher_module
from duetime.runtime.claiming.fetcher import Fetcher
from duetime.runtime.pacing import POLL_WITHOUT_HINTS, Interval
from duetime.runtime.upkeep import firing, hint_listener
from duetime.runtime.worker import Worker
from duetime.stores.base.local_hints import HintSubscribers
from duetime.stores.open import open_store
from tests.integration.kit import PATIENCE

RARELY = Interval(3600.0, spacing=0.0, longest=3600.0)
OFTEN = Interval(0.1, spacing=0.0, longest=0.1)


class App:
    """A worker with a task under a limit, and one whose jobs last as long as the test wants."""

    def __init__(self, url: str) -> None:
        self.scheduler = Scheduler(url)
        self.running = 0
        self.passed = 0
        self.may_end = asyncio.Event()

        @self.scheduler.task(name="passes", limit=1)
        async def passes() -> None:
            self.passed += 1

        @self.scheduler.task(name="lasts")
        async def lasts() -> None:
            self.running += 1
            await self.may_end.wait()

        self.passes = passes
        self.lasts = lasts

    @asynccontextmanager
    async def working(self, **settings: Any) -> AsyncIterator[None]:
        async with self.scheduler, self.scheduler.worker(schedules=False, retention=None, **settings):
            yield


@pytest.fixture(autouse=True)
def unlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker that hears look at no time of its own, so that only what is tested can help."""
    monkeypatch.setattr(fetcher_module, "POLL_WITH_HINTS", RARELY)
    monkeypatch.setattr(firing, "POLL_SCHEDULES", RARELY)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - nobody tells when it is so
            await asyncio.sleep(0.01)


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose every hint."""
    monkeypatch.setattr(Fetcher, "take_hint", lambda _self, _hint: None)


@pytest.mark.usefixtures("unheard")
@pytest.mark.covers("limit-starves")
async def test_a_job_at_a_gate_is_found_by_a_heartbeat_when_its_hint_is_lost(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The second job may come while the worker still knows of the first: then it looks by itself.
    monkeypatch.setattr(fetcher_module, "POLL_WITH_HINTS", OFTEN)
    app = App(store_url)
    async with app.working(lease=1):
        for count in (1, 2):
            await app.passes.enqueue()
            await until(lambda wanted=count: app.passed == wanted)  # type: ignore[misc]


@pytest.fixture
def unhinted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose every hint of this process."""
    for way in ("notify", "tell"):
        monkeypatch.setattr(HintSubscribers, way, lambda _self, _hint: None)


async def fall_asleep(app: App) -> None:
    """Let the worker come past what it looks for at its start, and from before it hears others."""
    await until(lambda: app.scheduler.store.hears_others)
    await asyncio.sleep(3 * POLL_WITHOUT_HINTS.alone)


@pytest.mark.usefixtures("unhinted")
@pytest.mark.parametrize("delay", [0, 1.5])
async def test_a_job_is_found_by_a_heartbeat_when_its_hint_is_lost(store_url: str, delay: float) -> None:
    app = App(store_url)
    async with app.working(lease=1):
        await fall_asleep(app)
        await app.lasts.options(delay=delay).enqueue()
        await until(lambda: app.running == 1)
        app.may_end.set()


@pytest.mark.usefixtures("unhinted", "unheard")
@pytest.mark.covers("lease-behind-backlog")
async def test_a_job_behind_very_many_of_other_tasks_is_found_by_a_heartbeat_when_its_hint_is_lost(
    store_url: str,
) -> None:
    app, others = App(store_url), Scheduler(store_url)

    @others.task(name="of_others")
    async def of_others() -> None: ...

    async with app.working(lease=1), others:
        await fall_asleep(app)
        await others.enqueue_many([of_others.call() for _ in range(200)])
        await app.lasts.enqueue()
        await until(lambda: app.running == 1)
        app.may_end.set()


@pytest.mark.usefixtures("unhinted")
async def test_a_schedule_is_found_by_a_heartbeat_when_its_hint_is_lost(store_url: str) -> None:
    app = App(store_url)
    async with app.scheduler, app.scheduler.worker(retention=None, lease=1):
        await fall_asleep(app)
        await app.scheduler.schedules.put("often", every("1s"), app.lasts)
        await until(lambda: app.running >= 1)
        app.may_end.set()


@pytest.mark.usefixtures("unheard")
@pytest.mark.covers("limit-starves")
async def test_a_worker_that_hears_nobody_looks_for_jobs_at_gates_often(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App(store_url)
    monkeypatch.setattr(type(open_store(store_url)), "hears_others", False)
    async with app.working():
        await app.passes.enqueue()
        await until(lambda: app.passed == 1)


async def test_a_worker_that_hears_nobody_any_more_learns_so_soon(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hint_listener, "POLL_CHANGES", OFTEN)
    monkeypatch.setattr(hint_listener, "_CHECK_PAUSE", 0.05)
    looked = asyncio.Event()
    monkeypatch.setattr(Worker, "_look_for_changes", lambda _self: looked.set())
    app = App(store_url)
    async with app.working(lease=1):
        await fall_asleep(app)
        looked.clear()
        monkeypatch.setattr(type(app.scheduler.store), "hears_others", False)
        await until(looked.is_set)


@pytest.mark.covers("limit-starves")
async def test_a_job_at_a_gate_starts_when_its_queue_has_a_slot_again(store_url: str) -> None:
    app = App(store_url)
    async with app.working(queues={"mail": 1, "default": 3}):
        await app.lasts.options(queue="mail").enqueue()
        await until(lambda: app.running == 1)
        await app.passes.options(queue="mail").enqueue()
        # It comes after the other, so the worker has looked for that by then.
        await app.passes.enqueue()
        await until(lambda: app.passed == 1)
        app.may_end.set()
        await until(lambda: app.passed == 2)


@pytest.mark.covers("limit-starves")
async def test_jobs_of_a_queue_that_was_limited_while_it_was_full_start_when_there_is_room(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher_module, "POLL_WITH_HINTS", OFTEN)
    app = App(store_url)
    async with app.working(concurrency=4):
        await app.scheduler.enqueue_many([app.lasts.call() for _ in range(6)])
        await until(lambda: app.running == 4)
        await app.scheduler.queues.limit("default", 2)
        app.may_end.set()
        await until(lambda: app.running == 6)


@pytest.mark.usefixtures("unheard")
@pytest.mark.covers("limit-starves")
async def test_a_job_at_a_gate_is_looked_for_while_others_never_cease(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher_module, "POLL_WITH_HINTS", OFTEN)
    app = App(store_url)
    scheduler, rounds = app.scheduler, 0

    @scheduler.task(name="goes_on")
    async def goes_on() -> None:
        nonlocal rounds
        rounds += 1
        if not app.passed:
            await scheduler.enqueue_many(
                [goes_on.call(), goes_on.call()] if rounds < 50 else [goes_on.call()]
            )

    async with app.working(concurrency=2):
        await scheduler.enqueue_many([goes_on.call() for _ in range(20)])
        await until(lambda: rounds > 20)
        await app.passes.enqueue()
        await until(lambda: app.passed == 1)
