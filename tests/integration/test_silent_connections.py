"""Connections that die without a word, behind a proxy that acknowledges every byte; new ones work."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from duetime import Scheduler
from duetime.errors import StoreUnavailable
from duetime.model.states import State
from duetime.stores.base import Hint
from tests.integration.kit import until
from tests.support.proxy import Proxy, before

WARM = 8
"""How many connections of a pool are there before they die."""
BOUND = 10.0
"""Within how many seconds a job is stored, as the documentation says."""
LATER = 3600
LONG = "x" * 200_000
"""Two of these are so long that MariaDB is asked first whether it takes them."""


@pytest.fixture(params=["postgres", "mariadb", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    """The address of an empty store on each kind of server."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with before(url) as proxy:
        yield proxy


class App:
    """A client with one task."""

    def __init__(self, url: str) -> None:
        self.scheduler = Scheduler(url)
        self.gate = asyncio.Event()
        self.started = asyncio.Event()

        @self.scheduler.task(name="greet")
        async def greet(_text: str = "") -> str:
            return "hello"

        @self.scheduler.task(name="wait")
        async def wait() -> str:
            self.started.set()
            await self.gate.wait()
            return "done"

        self.greet = greet
        self.wait = wait

    async def warm_up(self) -> None:
        """Open some connections."""
        await asyncio.gather(*(self.greet.options(delay=LATER).enqueue() for _ in range(WARM)))

    async def stored(self) -> int:
        """Count the jobs that wait."""
        return (await self.scheduler.store.counts())["default", State.PENDING]


@pytest.fixture
def app(proxy: Proxy, url: str) -> App:
    """A client for whom two seconds are too long."""
    return App(f"{proxy.url(url)}?timeout=2")


async def stored_within(url: str, bound: float) -> None:
    with before(url) as proxy:
        app = App(proxy.url(url))
        async with app.scheduler:
            await app.warm_up()
            proxy.swallow()
            began = time.monotonic()
            await app.greet.enqueue()
            assert time.monotonic() - began < bound
            for _ in range(30):
                await app.greet.enqueue()
            assert time.monotonic() - began < bound, "the other dead connections are not tried in turn"
            assert await app.stored() == WARM + 31


@pytest.mark.covers("silent-connection")
async def test_on_every_server_a_job_is_stored_within_ten_seconds_and_each_of_thirty_more_at_once(
    postgres_url: str, mariadb_url: str, redis_url: str
) -> None:
    await asyncio.gather(*(stored_within(url, BOUND) for url in (postgres_url, mariadb_url, redis_url)))


@pytest.mark.covers("silent-connection")
async def test_callers_of_every_kind_see_no_failure_and_each_job_is_stored_once(
    proxy: Proxy, app: App
) -> None:
    async with app.scheduler:
        await app.warm_up()
        await asyncio.gather(*(asyncio.to_thread(app.greet.sync.enqueue) for _ in range(4)))
        before = await app.stored()
        proxy.swallow()
        await asyncio.gather(
            app.scheduler.enqueue_many([app.greet.call(LONG) for _ in range(2)]),
            *(app.greet.enqueue() for _ in range(20)),
            *(asyncio.to_thread(app.greet.sync.enqueue) for _ in range(4)),
            app.scheduler.enqueue_many([app.greet.call() for _ in range(1000)]),
            app.greet.options(key="k").enqueue(),
        )
        assert await app.stored() == before + 1027


@pytest.mark.covers("silent-connection")
async def test_a_caller_who_cannot_know_what_came_of_a_request_is_told_and_the_next_calls_work(
    proxy: Proxy, app: App
) -> None:
    async with app.scheduler:
        await app.warm_up()
        job = await app.greet.options(delay=LATER).enqueue()
        proxy.swallow()
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            await app.scheduler.queues.pause("default")
        async with asyncio.timeout(1):
            await asyncio.gather(*(job.record() for _ in range(WARM)))


@pytest.mark.covers("silent-connection")
async def test_what_may_take_long_does_not_wait_long_for_a_dead_connection(proxy: Proxy, app: App) -> None:
    async with app.scheduler:
        await app.warm_up()
        proxy.swallow()
        async with asyncio.timeout(8):
            assert await app.scheduler.jobs.list()
            # On Redis nothing takes long.
            if app.scheduler.store.capabilities.transactions:
                proxy.swallow()
                await app.scheduler.store.migrate()


@pytest.mark.covers("silent-connection")
async def test_callers_with_a_short_time_out_of_their_own_do_not_meet_one_dead_connection_after_another(
    proxy: Proxy, app: App
) -> None:
    async with app.scheduler:
        await app.warm_up()
        proxy.swallow()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.1):
                await app.greet.enqueue()
        async with asyncio.timeout(1):
            await app.greet.enqueue()


@pytest.mark.covers("silent-connection")
async def test_a_worker_settles_and_claims_again(proxy: Proxy, url: str, app: App) -> None:
    other = App(url)
    async with app.scheduler.worker(), other.scheduler:
        job = await app.wait.enqueue()
        await app.started.wait()
        proxy.swallow()
        app.gate.set()

        async def ended() -> bool:
            return (await other.scheduler.jobs.get(job.id)).state == "succeeded"

        await until(ended, what="a job that has ended")
        later = await other.greet.enqueue()
        assert await later.result(timeout=30) == "hello"


@pytest.mark.covers("silent-connection")
async def test_who_listens_is_connected_anew_as_soon_as_another_connection_is_found_dead(
    proxy: Proxy, url: str, app: App
) -> None:
    other = App(url)
    async with app.scheduler, other.scheduler:
        hints = app.scheduler.store.wakeups()
        assert await anext(hints) == Hint("any")
        proxy.swallow()
        await app.scheduler.store.now()
        async with asyncio.timeout(8):
            # It was deaf, and hears again.
            assert [await anext(hints), await anext(hints)] == [Hint("any")] * 2
            await other.greet.enqueue()
            assert await anext(hints) == Hint("jobs")
        await hints.aclose()  # type: ignore[attr-defined]


@pytest.mark.covers("silent-connection")
async def test_the_kernel_notices_a_peer_that_is_gone(
    proxy: Proxy, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[socket.socket] = []
    connect = asyncio.BaseEventLoop.create_connection

    async def noted(loop: Any, *args: Any, **options: Any) -> Any:
        transport, protocol = await connect(loop, *args, **options)
        made.append(transport.get_extra_info("socket"))
        return transport, protocol

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", noted)
    async with app.scheduler:
        await app.warm_up()
        ours = [sock for sock in made if sock.getpeername()[1] == proxy.port]
        assert ours
        for sock in ours:
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 15_000
