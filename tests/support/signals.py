"""Ctrl-C works as in a terminal: a shell has what it runs in the background ignore it, and so would all that tests start."""

from __future__ import annotations

import signal


def pytest_sessionstart() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
