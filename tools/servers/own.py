"""A server that we start ourselves, and that is gone at the end."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from tools.servers.binaries import find
from tools.servers.process import ServerProcess


class OwnServer(ABC):
    """A server in a temporary folder, on a port of its own, as long as this object is open."""

    _AT_ONCE: ClassVar = signal.SIGKILL
    """What ends it soonest and leaves none of its processes behind."""

    def __init__(self, program: str, *, account: str = "postgres") -> None:
        self._program = find(program)
        self._process = ServerProcess(program, account=account)
        self.port = self._process.port

    @property
    def pid(self) -> int | None:
        """The process that was started last, which may have started others."""
        return self._process.pid

    def start(self) -> None:
        """Start, on the same port and with the same data as before, and return once it answers."""
        self._process.start(self._program, *self._arguments(), ready=self._answers)

    def stop(self) -> None:
        """Stop in order; nothing happens when it is not running."""
        self._process.signal(signal.SIGTERM)

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """Kill the server without a word, as the kernel does when memory runs out."""
        self._process.signal(signal.SIGKILL)

    def close(self) -> None:
        """Stop at once and remove the data."""
        self._process.signal(self._AT_ONCE)
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

    @abstractmethod
    def _arguments(self) -> Iterable[str | Path]:
        """Return what its program is told."""

    @abstractmethod
    def _answers(self) -> bool:
        """True once it can be used."""
