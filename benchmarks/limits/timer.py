"""The bare timer: how late `loop.call_at` calls back on this machine."""

from __future__ import annotations

import asyncio

from benchmarks.figures import spread


async def late(*, timers: int, span: float) -> dict[str, float]:
    """Return the lateness, in milliseconds, of timers spread evenly over some seconds."""
    loop = asyncio.get_running_loop()
    started = loop.time() + 0.2
    seen: list[float] = []
    done = asyncio.Event()

    def call(due: float) -> None:
        seen.append((loop.time() - due) * 1000)
        if len(seen) == timers:
            done.set()

    for n in range(timers):
        due = started + n * span / timers
        loop.call_at(due, call, due)
    await done.wait()
    return spread(seen)
