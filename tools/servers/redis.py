"""A Redis of our own."""

from __future__ import annotations

import signal
import socket
from types import TracebackType
from typing import Self

from tools.servers.binaries import find
from tools.servers.process import HOST, ServerFailed, ServerProcess

_SOCKET = "socket"


class RedisServer:
    """A Redis that keeps an append-only file in a temporary folder as long as this object is open."""

    def __init__(self, *settings: str) -> None:
        self._program = find("redis-server")
        self._process = ServerProcess("redis")
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

    @property
    def port(self) -> int:
        """The loopback port it listens on."""
        return self._process.port

    @property
    def pid(self) -> int | None:
        """The process to look at, once it has been started."""
        return self._process.pid

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

    def start(self) -> None:
        """Start, on the same port and with the same data as before, and return once it answers."""
        fixed = (
            *("--bind", HOST, "--port", str(self.port), "--dir", str(self._process.folder)),
            *("--unixsocket", _SOCKET, "--appendonly", "yes", "--save", ""),
        )
        words = self._settings if self._watches else (*fixed, *self._settings)
        self._process.start(self._program, *words, ready=self._answers)

    def stop(self) -> None:
        """Stop in order; nothing happens when it is not running."""
        if self._process.running:
            self._process.signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the server without a word, as the kernel does when memory runs out."""
        self._process.signal(signal.SIGKILL)

    def bound_files(self, size: int | None) -> None:
        """Let no file of the server grow beyond a size, as if its disk were full; `None` takes that back."""
        bound = "unlimited" if size is None else str(size)
        self._process.run(find("prlimit"), "--pid", str(self._process.pid), f"--fsize={bound}:")

    def close(self) -> None:
        """Stop at once and remove the data."""
        if self._process.running:
            self._process.signal(signal.SIGKILL)
        self._process.remove()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _answers(self) -> bool:
        try:
            return self._ask(b"PING").startswith(b"+PONG")
        except OSError:
            return False

    def _ask(self, command: bytes) -> bytes:
        with socket.create_connection((HOST, self.port), timeout=5) as asked:
            asked.sendall(command + b"\r\n")
            return asked.recv(1024)
