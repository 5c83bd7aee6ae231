from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import pytest

from duetime.model.outcome import Failed, Succeeded
from duetime.runtime.running.threads import ThreadRunner


async def test_every_answer_arrives_also_of_many_at_once() -> None:
    runner = ThreadRunner()
    answers = await asyncio.wait_for(
        asyncio.gather(*[runner.submit(partial(int, n)) for n in range(200)]), 10
    )
    assert answers == [Succeeded(str(n)) for n in range(200)]
    runner.close()


async def test_the_loop_is_woken_once_for_answers_that_wait_together(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, loop, woken = ThreadRunner(), asyncio.get_running_loop(), 0
    wake = loop.call_soon_threadsafe

    def counting(*args: Any) -> object:
        nonlocal woken
        woken += 1
        return wake(*args)

    monkeypatch.setattr(loop, "call_soon_threadsafe", counting)
    futures = [runner.submit(lambda: None) for _ in range(5)]
    # The loop is kept busy until all threads have answered.
    while len(runner._answers) < len(futures):
        threading.Event().wait(0.001)
    await asyncio.wait_for(asyncio.gather(*futures), 5)
    assert woken < len(futures)
    assert await asyncio.wait_for(runner.submit(lambda: "next"), 5) == Succeeded('"next"'), (
        "it is woken again"
    )
    runner.close()


async def test_an_answer_that_nobody_waits_for_does_not_hold_up_the_others() -> None:
    runner, go_on = ThreadRunner(), threading.Event()
    given_up = runner.submit(go_on.wait)
    given_up.cancel()
    other = runner.submit(go_on.wait)
    go_on.set()
    assert await asyncio.wait_for(other, 5) == Succeeded("true")
    runner.close()


async def test_what_is_raised_comes_as_an_outcome() -> None:
    runner = ThreadRunner()
    answer = await asyncio.wait_for(runner.submit(lambda: next(iter(()))), 5)
    assert isinstance(answer, Failed)
    assert isinstance(answer.cause, StopIteration)
    runner.close()
