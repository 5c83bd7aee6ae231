"""Commits as fast as it can for some seconds, then prints how often that was."""

from __future__ import annotations

import asyncio
import sys
import time

from tests.integration.tasks import App, is_open


async def commit(url: str, gate: str, seconds: float) -> int:
    """Enqueue one job after another, each in a commit of its own."""
    app = App(url)
    done = 0
    async with app.scheduler:
        print("ready", flush=True)  # noqa: T201 - the test reads it
        while not is_open(gate):  # noqa: ASYNC110 - the gate is a file, opened by another process
            await asyncio.sleep(0.001)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await app.note.enqueue()
            done += 1
    return done


if __name__ == "__main__":
    print(asyncio.run(commit(sys.argv[1], sys.argv[2], float(sys.argv[3]))))  # noqa: T201 - see above
