"""A Redis of our own."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path

from tools.servers.binaries import find
from tools.servers.own import OwnServer
from tools.servers.process import HOST, ServerFailed

_SOCKET = "socket"


class RedisServer(OwnServer):
    """A Redis that keeps an append-only file in a temporary folder as long as this object is open."""

    def __init__(self, *settings: str) -> None:
        super().__init__("redis-server")
        self._settings = settings
        self._watches = False

    @classmethod
    def sentinel(cls, watched: RedisServer, service: str) -> RedisServer:
        """Return a Sentinel that watches a server."""
        server = cls("--sentinel")
        file = server._process.folder / "sentinel.conf"
        file.write_text(
            f"port {server.port}\nbind {HOST}\nsentinel monitor {service} {HOST} {watched.port} 1\n",
            encoding="utf-8",
        )
        file.chmod(0o666)
        server._settings = (str(file), "--sentinel")
        server._watches = True
        return server

    def url(self, database: int = 0) -> str:
        """Return the address of one database."""
        return f"redis://{HOST}:{self.port}/{database}"

    def socket_url(self) -> str:
        """Return the address of its socket in the file system."""
        return f"unix://{self._process.folder / _SOCKET}"

    def flush(self) -> None:
        """Remove all data, and keep the functions."""
        answer = self._ask(b"FLUSHALL")
        if not answer.startswith(b"+OK"):
            raise ServerFailed(f"Redis did not empty itself: {answer!r}")

    def bound_files(self, size: int | None) -> None:
        """Let no file of the server grow beyond a size, as if its disk were full; `None` takes that back."""
        bound = "unlimited" if size is None else str(size)
        self._process.run(find("prlimit"), "--pid", str(self.pid), f"--fsize={bound}:")

    def _arguments(self) -> Iterable[str | Path]:
        fixed = (
            *("--bind", HOST, "--port", str(self.port), "--dir", str(self._process.folder)),
            *("--unixsocket", _SOCKET, "--appendonly", "yes", "--save", ""),
        )
        return self._settings if self._watches else (*fixed, *self._settings)

    def _answers(self) -> bool:
        try:
            return self._ask(b"PING").startswith(b"+PONG")
        except OSError:
            return False

    def _ask(self, command: bytes) -> bytes:
        with socket.create_connection((HOST, self.port), timeout=5) as asked:
            asked.sendall(command + b"\r\n")
            return asked.recv(1024)
