"""Huey on Redis: the same threads, which wait for new jobs in the server."""

from __future__ import annotations

from typing import Any

from huey import RedisHuey

from benchmarks.peers.systems import huey


class Adapter(huey.Adapter):
    """A Huey with the task that everyone runs."""

    def opened(self) -> Any:
        """Return a Huey on its database."""
        return RedisHuey("peers", url=self.url, results=False)

    def asking(self, queue: Any, note: Any) -> Client:
        """Return the client of a task."""
        return Client(self.url, queue, note)


class Client(huey.Client):
    """Calls that block, and so are made one after the other."""

    def __init__(self, url: str, queue: Any, note: Any) -> None:
        super().__init__(queue, note)
        self._url = url

    async def fill(self, count: int) -> None:
        # Here, since the memory of workers is measured, and this is not theirs.
        from benchmarks.peers.systems.base import piped

        key = self._huey.storage.schedule_key
        piped(self._url, (("ZADD", key, stamp, data) for data, stamp in self._later(count)))
