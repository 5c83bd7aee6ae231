"""Forks after the scheduler was opened, as servers that load the application first do."""

from __future__ import annotations

import asyncio
import os
import sys

from duetime.errors import NotOpen
from tests.integration import ledger
from tests.integration.tasks import App


async def work(app: App) -> None:
    """Open the scheduler in this process and run one job."""
    async with app.scheduler, app.scheduler.worker(queues=[f"of-{os.getpid()}"]) as worker:
        job = await app.note.options(queue=f"of-{os.getpid()}").enqueue()
        await job.result(timeout=20)
        ledger.write("worked", job=worker.id)


async def enqueue_unopened(app: App) -> None:
    """Use what the parent opened."""
    try:
        await app.note.enqueue()
    except NotOpen:
        ledger.write("refused")


def main() -> None:
    """Open, fork, and work on both sides."""
    app = App(sys.argv[1])
    if sys.argv[2] == "async":
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.run_until_complete(app.scheduler.open())
    else:
        app.note.options(queue="nobody").sync.enqueue()
    if os.fork() == 0:
        asyncio.run(enqueue_unopened(app))
        if sys.argv[2] == "sync":
            app.note.options(queue="nobody").sync.enqueue()
            app.scheduler.sync.close()
        asyncio.run(work(app))
        os._exit(0)
    os.wait()
    if sys.argv[2] == "async":
        loop.run_until_complete(app.scheduler.close())
    else:
        app.scheduler.sync.close()
    asyncio.run(work(app))


if __name__ == "__main__":
    main()
