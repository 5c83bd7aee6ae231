from __future__ import annotations

import asyncio
import concurrent.futures
from typing import NoReturn

from duetime.scheduler.processes.portal import BlockingPortal


async def test_a_call_that_the_loop_cancels_raises_an_exception_in_the_callers_thread() -> None:
    loop = asyncio.get_running_loop()
    visits: asyncio.Queue[asyncio.Task[object] | None] = asyncio.Queue()

    async def nothing() -> None: ...

    async def stay() -> NoReturn:
        visits.put_nowait(asyncio.current_task())
        await asyncio.Event().wait()
        raise AssertionError

    def call() -> BaseException:
        try:
            portal.run(stay())
        except BaseException as error:  # noqa: BLE001 -- what kind it is, is the question
            return error

    portal = BlockingPortal(current_loop=lambda: loop, open_=nothing, close=nothing)
    calling = asyncio.ensure_future(asyncio.to_thread(call))
    visit = await visits.get()
    assert visit is not None
    visit.cancel()
    assert type(await calling) is concurrent.futures.CancelledError
