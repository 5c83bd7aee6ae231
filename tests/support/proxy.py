"""A TCP proxy between clients and a server that a test can cut, refuse and silence."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

_CHUNK = 65536
_TURNS = 5
_LINGER_NONE = struct.pack("ii", 1, 0)


class Proxy:
    """Passes bytes on until it is told otherwise; every verb may be called from any thread and holds when it returns."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._lines: set[_Line] = set()
        self._listener: asyncio.Server | None = None
        self._flowing: asyncio.Event | None = None
        self.port = 0
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._do(self._listen)

    def url(self, url: str) -> str:
        """Return the URL of the server with the address of the proxy in it."""
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user}{at}127.0.0.1:{self.port}"))

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._lines)

    def reset(self) -> None:
        """Cut every connection with a reset."""
        self._do(self._reset)

    def refuse(self) -> None:
        """Cut every connection with a reset, and accept none until `accept`."""
        self._do(self._close_listener)
        self._do(self._reset)

    def accept(self) -> None:
        """Take connections again after `refuse`."""
        self._do(self._listen)

    def swallow(self) -> None:
        """Turn every open connection into a black hole: bytes are acknowledged and never arrive. New ones work."""
        self._do(self._swallow)

    def stall(self) -> None:
        """Hold back all bytes of all connections, old and new, until `resume` lets them through."""
        self._do(self._stall)

    def resume(self) -> None:
        """Let bytes through after `stall`, those that waited first."""
        self._do(self._resume)

    def lead_to(self, url: str) -> None:
        """Make new connections to another server."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._target = (parts.hostname, parts.port)

    def close(self) -> None:
        """Cut everything and end."""
        self._do(self._close_listener)
        self._do(self._reset)
        self._do(self._cancel_all)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, step: Callable[[], Any]) -> None:
        asyncio.run_coroutine_threadsafe(step(), self._loop).result(timeout=10)

    async def _listen(self) -> None:
        if self._flowing is None:
            self._flowing = asyncio.Event()
            self._flowing.set()
        if self._listener is None:
            self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._listener.sockets[0].getsockname()[1]

    async def _close_listener(self) -> None:
        if self._listener is not None:
            for listening in self._listener.sockets:
                self._loop.remove_reader(listening)
            # What was just accepted takes some turns until it is served, and would stay open if its server were closed.
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            self._listener.close()
            self._listener = None

    async def _reset(self) -> None:
        for line in list(self._lines):
            line.reset()
        self._lines.clear()

    async def _swallow(self) -> None:
        for line in self._lines:
            line.silent = True

    async def _stall(self) -> None:
        assert self._flowing is not None
        self._flowing.clear()

    async def _resume(self) -> None:
        assert self._flowing is not None
        self._flowing.set()

    async def _cancel_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except (OSError, asyncio.CancelledError):
            _reset(writer)
            return
        line = _Line(writer, far_writer)
        self._lines.add(line)
        try:
            # Only `close` cancels, and nobody is left to be told.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(
                    self._pump(line, reader, far_writer), self._pump(line, far_reader, writer)
                )
        finally:
            self._lines.discard(line)
            for end in (writer, far_writer):
                end.close()

    async def _pump(self, line: _Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._flowing is not None
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._flowing.wait()
                if not line.silent:
                    writer.write(data)
                    await writer.drain()
        if not line.silent:
            with contextlib.suppress(OSError, RuntimeError):
                writer.write_eof()


class _Line:
    """One connection through the proxy."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self._ends = (near, far)
        self.silent = False

    def reset(self) -> None:
        for end in self._ends:
            _reset(end)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a reset instead of a goodbye."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
    writer.transport.abort()


@contextlib.contextmanager
def before(url: str) -> Iterator[Proxy]:
    """Open a proxy before the server of a URL, and close it at the end."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    proxy = Proxy(parts.hostname, parts.port)
    try:
        yield proxy
    finally:
        proxy.close()
