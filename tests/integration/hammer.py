"""A process that writes to one store as fast as it can, for some seconds, and prints how many jobs were accepted."""

from __future__ import annotations

import asyncio
import sys
import time

from duetime import Scheduler

BATCH = 20


async def main(url: str, seconds: float) -> None:
    """Enqueue and run jobs at the same time."""
    scheduler = Scheduler(url)

    @scheduler.task(name="note")
    async def note(text: str) -> None:
        del text

    accepted = 0
    async with scheduler.worker(concurrency=50, grace=1):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            await scheduler.enqueue_many([note.call("x" * 1_000) for _ in range(BATCH)])
            accepted += BATCH
    sys.stdout.write(f"{accepted}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
