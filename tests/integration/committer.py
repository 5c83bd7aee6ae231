"""Writes as fast as it can for some seconds, then prints how many jobs it has stored."""

from __future__ import annotations

import asyncio
import sys
import time

from tests.integration.tasks import App, is_open

CLIENTS = 8
"""One would leave the file to the others between its answer and its next request."""


async def commit(app: App, end: float) -> int:
    """Enqueue one job after another until the end."""
    done = 0
    while time.monotonic() < end:
        await app.note.enqueue()
        done += 1
    return done


async def main(url: str, gate: str, seconds: float) -> None:
    """Wait for the gate, then keep the writer busy."""
    app = App(url)
    async with app.scheduler:
        print("ready", flush=True)  # noqa: T201 - the test reads it
        while not is_open(gate):  # noqa: ASYNC110 - the gate is a file, opened by another process
            await asyncio.sleep(0.001)
        end = time.monotonic() + seconds
        print(sum(await asyncio.gather(*[commit(app, end) for _ in range(CLIENTS)])))  # noqa: T201 - see above


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
