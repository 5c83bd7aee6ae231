"""Many commands to Redis in few round trips, to store what a system's own call would have stored one by one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

Command = tuple[Any, ...]
_CHUNK = 5_000


def piped(url: str, commands: Iterable[Command]) -> None:
    """Send all commands."""
    # Here, since the memory of workers is measured, and some of them need none of it.
    from redis import Redis

    waiting = iter(commands)
    with Redis.from_url(url) as client:
        while some := list(islice(waiting, _CHUNK)):
            pipe = client.pipeline(transaction=False)
            for command in some:
                pipe.execute_command(*command)
            pipe.execute()
