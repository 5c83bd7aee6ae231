"""An address that leads to one server now and to another later, as that of a service with a standby does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tools.servers import RedisServer
from tools.servers.process import HOST


class Switch:
    """Passes connections on to a server."""

    def __init__(self, target: RedisServer) -> None:
        self._target = target
        self._connections = set[asyncio.Task[None]]()
        self._port = 0
        self._flow = _open()

    @property
    def url(self) -> str:
        """The address that stays the same."""
        return f"redis://{HOST}:{self._port}/0"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Switch]:
        """Listen for the time of a block."""
        async with await asyncio.start_server(self._pass_on, HOST) as listening:
            self._port = listening.sockets[0].getsockname()[1]
            yield self
            await self.cut()

    def turn(self, target: RedisServer) -> None:
        """Lead to another server from now on; whoever is connected stays where he is."""
        self._target = target

    async def cut(self) -> None:
        """Break all connections."""
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def freeze(self) -> None:
        """Pass nothing more on for whoever is connected, without a word."""
        self._flow.clear()
        self._flow = _open()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        flow = self._flow
        with suppress(OSError, asyncio.CancelledError):
            there, here = await asyncio.open_connection(HOST, self._target.port)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(_pump(reader, here, flow))
                    both.create_task(_pump(there, writer, flow))
            finally:
                here.close()
        writer.close()


def _open() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, flow: asyncio.Event) -> None:
    with suppress(OSError):
        while data := await source.read(65_536):
            await flow.wait()
            sink.write(data)
            await sink.drain()
    sink.close()
