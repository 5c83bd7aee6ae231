"""The cheapest hint: a byte through a pipe to an event loop that sleeps."""

from __future__ import annotations

import asyncio
import os
import threading
import time

from benchmarks.figures import percentile


async def byte(pings: int) -> float:
    """Return the median seconds from writing a byte until the sleeping event loop has seen it."""
    loop = asyncio.get_running_loop()
    reader, writer = os.pipe()
    sent: list[float] = []
    seen: list[float] = []
    done = asyncio.Event()

    def send() -> None:
        for _ in range(pings):
            time.sleep(0.001)
            sent.append(time.perf_counter())
            os.write(writer, b".")

    def see() -> None:
        seen.append(time.perf_counter())
        os.read(reader, 1)
        if len(seen) == pings:
            done.set()

    loop.add_reader(reader, see)
    thread = threading.Thread(target=send)
    thread.start()
    await done.wait()
    thread.join()
    loop.remove_reader(reader)
    os.close(reader)
    os.close(writer)
    return percentile([there - here for here, there in zip(sent, seen, strict=True)], 0.5)
