from __future__ import annotations

import asyncio
import threading

import pytest

from duetime.model.time import SECOND
from duetime.runtime.upkeep import lease
from duetime.runtime.upkeep.lease import HANG_LIMIT, LoopWatch


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        monkeypatch.setattr(lease, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.covers("blocked-loop")
async def test_a_loop_that_stands_still_is_shown_once_with_its_stack(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    watch = LoopWatch(asyncio.get_running_loop(), on_hang=lambda: None)
    blocked, done = threading.Event(), threading.Event()

    def look() -> None:
        blocked.wait(5)
        watch.ask()
        clock.now += 2 * SECOND
        assert not watch.hanging()
        clock.now += SECOND
        watch.hanging()
        done.set()

    threading.Thread(target=look).start()
    blocked.set()
    done.wait(5)
    assert caplog.text.count("has been blocked") == 1
    assert "test_a_loop_that_stands_still" in caplog.text
    assert watch.lag == 3 * SECOND

    await asyncio.sleep(0)
    assert "runs again after 3.0 s" in caplog.text
    assert watch.lag == 0


async def test_a_loop_that_answers_in_time_is_not_mentioned(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    watch = LoopWatch(asyncio.get_running_loop(), on_hang=lambda: None)
    for _ in range(5):
        watch.ask()
        assert not watch.hanging()
        await asyncio.sleep(0)
        clock.now += 10 * SECOND
    assert not caplog.text


async def test_a_loop_in_which_no_job_runs_is_asked_less_often(clock: Clock) -> None:
    watch = LoopWatch(asyncio.get_running_loop(), on_hang=lambda: None)
    clock.now = 3600 * SECOND

    async def asks(*, quiet: bool) -> bool:
        watch.ask(quiet=quiet)
        asked = watch._asked_at is not None
        await asyncio.sleep(0)
        return asked

    assert await asks(quiet=True)
    clock.now += 10 * SECOND
    assert not await asks(quiet=True)
    assert await asks(quiet=False)
    clock.now += 30 * SECOND
    assert await asks(quiet=True)


async def test_past_the_hang_limit_the_worker_is_told_once_until_the_loop_comes_back(clock: Clock) -> None:
    told: list[int] = []
    watch = LoopWatch(asyncio.get_running_loop(), on_hang=lambda: told.append(clock.now))
    watch.ask()
    clock.now += HANG_LIMIT - 1
    assert not watch.hanging()
    assert not told
    clock.now += 1
    assert watch.hanging()
    assert watch.hanging()
    assert len(told) == 1

    await asyncio.sleep(0)
    assert not watch.hanging()


def test_a_loop_that_is_closed_does_not_hang(clock: Clock) -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    watch = LoopWatch(loop, on_hang=lambda: None)
    watch.ask()
    clock.now += 2 * HANG_LIMIT
    assert not watch.hanging()
