"""A process that takes a lock and says what came of it, as it is told on standard input."""

from __future__ import annotations

import asyncio
import sys

from duetime.errors import LockLost
from duetime.locks import DistributedLock, open_lock


def say(text: str) -> None:
    """Tell the test."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def race(lock: DistributedLock, *, silent: int) -> str:
    """Take the lock as soon as its silent owner may be replaced, unless another one is quicker."""
    while True:
        fence, _ = await lock.try_take(token=f"{id(lock)} {silent}", holder="racer")
        if fence is not None:
            return f"won {fence}"
        owner = await lock.owner()
        if owner is not None and owner.fence > silent:
            return f"lost {owner.fence}"


async def hold(lock: DistributedLock) -> str:
    """Hold the lock until it is lost."""
    try:
        async with lock:
            say(f"held {lock.fence}")
            await asyncio.Event().wait()
    except LockLost:
        return f"lost {await lock.renew()} {await lock.release()}"
    return "kept"


async def main(url: str, ttl: str) -> None:
    loop = asyncio.get_running_loop()
    lock = open_lock(url, "raced", ttl=float(ttl))
    while line := (await loop.run_in_executor(None, sys.stdin.readline)).split():
        say(await (race(lock, silent=int(line[1])) if line[0] == "race" else hold(lock)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
