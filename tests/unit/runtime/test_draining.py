"""How long jobs that run may go on when their worker is stopped."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from duetime.model.time import SECOND
from duetime.runtime import worker as draining
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.running.run import StopCause
from duetime.runtime.worker import drain_runs
from tests.unit.runtime.kit import claim

LONG = 3_600 * SECOND


class Running:
    """A dispatcher with one run, which ends when it is told to, or when it is stopped unless it is stubborn."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.runs = {"job": SimpleNamespace(claim=claim())}
        self.stopped: list[StopCause] = []
        self._stubborn = stubborn
        self._idle = asyncio.Event()

    def end(self) -> None:
        self.runs.clear()
        self._idle.set()

    def stop_all(self, cause: StopCause) -> None:
        self.stopped.append(cause)
        if not self._stubborn:
            self.end()

    async def drained(self) -> None:
        await self._idle.wait()


async def drained(running: Running, *, grace: int = LONG, hurry: asyncio.Event | None = None) -> None:
    async with asyncio.timeout(10):
        await drain_runs(cast("Dispatcher", running), grace=grace, hurry=hurry or asyncio.Event())


async def test_a_job_that_ends_within_the_grace_time_is_left_alone() -> None:
    running = Running()
    asyncio.get_running_loop().call_soon(running.end)
    await drained(running)
    assert not running.stopped


async def test_a_job_that_goes_on_after_the_grace_time_is_stopped() -> None:
    running = Running()
    await drained(running, grace=0)
    assert len(running.stopped) == 1


async def test_the_grace_time_can_be_cut_short() -> None:
    running, hurry = Running(), asyncio.Event()
    asyncio.get_running_loop().call_soon(hurry.set)
    await drained(running, hurry=hurry)
    assert len(running.stopped) == 1


async def test_a_job_that_does_not_end_is_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(draining, "DRAIN_TIMEOUT", 0)
    running = Running(stubborn=True)
    await drained(running, grace=0)
    assert running.runs
    assert "1 job did not end" in caplog.text
