"""Requests under one key, while a worker looks ahead."""

from __future__ import annotations

import pytest

from duetime import Scheduler
from duetime.model.states import State
from tests.integration.kit import read_all, until

WAIT = 2
WINDOW = 60


@pytest.mark.covers("debounce-leaks")
async def test_debounced_requests_within_the_window_of_a_worker_run_once_as_asked_for_last(
    store_url: str,
) -> None:
    scheduler = Scheduler(store_url)
    ran: list[int] = []

    @scheduler.task(name="settle")
    async def settle(number: int) -> None:
        ran.append(number)

    async with scheduler, scheduler.worker(window=WINDOW):
        debounced = settle.options(key="account", debounce=WAIT)
        first = await debounced.enqueue(1)
        other = await settle.options(delay=WINDOW - 10).enqueue(0)

        async def has_looked_ahead() -> bool:
            return (await read_all(scheduler.store, [other.id]))[other.id].state is State.RUNNING

        await until(has_looked_ahead, what="a job that is claimed ahead")
        last = await debounced.enqueue(2)
        await last.result(timeout=30)
        assert (last.id, ran) == (first.id, [2])
