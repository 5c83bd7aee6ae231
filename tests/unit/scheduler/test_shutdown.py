"""A process that is told to stop: what listens for that hears of it, and everything else as before."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from duetime import Scheduler
from duetime.scheduler.processes.shutdown import on_stop_signal

PATIENCE = 20


@pytest.fixture
def handled() -> Iterator[list[int]]:
    """What a server's own handler of SIGTERM was told."""
    told: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    yield told
    signal.signal(signal.SIGTERM, before)


async def test_a_signal_is_heeded_and_its_handler_called(handled: list[int]) -> None:
    stopped = asyncio.Event()
    with on_stop_signal(stopped.set) as heeds:
        assert heeds
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            await stopped.wait()
    assert handled == [signal.SIGTERM]


async def test_afterwards_the_handler_is_as_it_was(handled: list[int]) -> None:
    before, calls = signal.getsignal(signal.SIGTERM), list[str]()
    with on_stop_signal(lambda: calls.append("first")):
        outer = signal.getsignal(signal.SIGTERM)
        second = on_stop_signal(lambda: calls.append("second"))
        second.__enter__()
    # In whatever order they end: the second one was put around the first.
    assert signal.getsignal(signal.SIGTERM) not in {before, outer}
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (handled, calls) == ([signal.SIGTERM], ["second"])
    second.__exit__(None, None, None)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(0)
    assert (handled, calls) == ([signal.SIGTERM] * 2, ["second"])


async def test_a_signal_that_no_one_handles_works_as_before() -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with on_stop_signal(lambda: None):
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_in_a_thread_no_signal_is_heeded() -> None:
    found: list[bool] = []

    async def look() -> None:
        with on_stop_signal(lambda: None) as heeds:
            found.append(heeds)

    thread = threading.Thread(target=lambda: asyncio.run(look()))
    thread.start()
    thread.join()
    assert found == [False]


@pytest.mark.covers("streams-block-shutdown")
async def test_the_worker_of_an_application_stops_at_the_signal_and_not_with_the_application(
    sqlite_url: str, handled: list[int]
) -> None:
    scheduler, stopped = Scheduler(sqlite_url), asyncio.Event()
    scheduler.events.subscribe(lambda _: stopped.set(), "worker.stopped")
    async with scheduler.lifespan():
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            await stopped.wait()
    assert handled == [signal.SIGTERM]
