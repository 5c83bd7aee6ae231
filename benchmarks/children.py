"""Runs a function in a process of its own, so that no measure warms up, or slows down, the next."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

_READY = "ready"


class ChildFailed(Exception):
    """A measuring process ended without an answer."""


class Child:
    """A function that runs in another process until it is told to finish."""

    def __init__(self, target: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self._name = f"{target.__module__}:{target.__qualname__}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, self._name, json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        """The process to look at."""
        return self._process.pid

    def wait_ready(self) -> None:
        """Return once the function has called `ready_then_wait`."""
        line = _pipe(self._process.stdout).readline().strip()
        if line != _READY:
            raise ChildFailed(f"{self._name} said {line!r} instead of being ready")

    def finish(self, last_words: str = "") -> Any:
        """Tell the function to finish and return its answer."""
        answer, _ = self._process.communicate(last_words, timeout=300)
        if self._process.returncode:
            raise ChildFailed(f"{self._name} ended with {self._process.returncode}")
        return json.loads(answer)

    def kill(self) -> None:
        """End the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def run(target: Callable[..., Any], **arguments: Any) -> Any:
    """Call a function, which may be asynchronous, in a fresh process and return its answer."""
    with started(target, **arguments) as child:
        return child.finish()


@contextmanager
def started(target: Callable[..., Any], **arguments: Any) -> Iterator[Child]:
    """Start a function, which may be asynchronous, in a fresh process; it is gone at the end, whatever happened."""
    child = Child(target, arguments)
    try:
        yield child
    finally:
        child.kill()


def ready_then_wait() -> str:
    """In the child: say that all is set up, and block until the parent says to finish; return its words."""
    print(_READY, flush=True)
    return sys.stdin.read()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _main() -> None:
    module, _, function = sys.argv[1].partition(":")
    answer = getattr(importlib.import_module(module), function)(**json.loads(sys.argv[2]))
    if inspect.iscoroutine(answer):
        answer = asyncio.run(answer)
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _main()
