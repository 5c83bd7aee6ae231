"""Places where a test can make the process die, freeze or fail; in production they do nothing.

`DUETIME_FAILPOINT=after:claim:kill:3` kills the process at the third commit of a claim, before its answer is
read. The actions are `kill`, `stop` (freeze until SIGCONT) and `raise`; without a number, the first time.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from duetime.errors import ConfigError

VARIABLE = "DUETIME_FAILPOINT"


class InjectedFault(Exception):
    """Raised by a failpoint whose action is `raise`."""


def failpoint(name: str) -> None:
    """Do what the environment asks for at this place; nothing otherwise."""
    if _hook is not None:
        _hook(name)


def arm(setting: str | None) -> None:
    """Install a setting, as the environment would at import; `None` removes it."""
    global _hook  # noqa: PLW0603 -- one hook per process is the point
    _hook = _parse(setting) if setting else None


def _parse(setting: str) -> Callable[[str], None]:
    head, _, last = setting.rpartition(":")
    name, nth = (head, int(last)) if last.isdigit() else (setting, 1)
    name, _, action = name.rpartition(":")
    if not name or action not in _ACTIONS:
        raise ConfigError(
            f"{VARIABLE}={setting!r} is not understood; write place:action[:nth], e.g. after:claim:kill"
        )
    return _Countdown(name, action, nth)


class _Countdown:
    """Acts at the nth visit of one place."""

    def __init__(self, name: str, action: str, nth: int) -> None:
        self._name = name
        self._act = _ACTIONS[action]
        self._left = nth

    def __call__(self, name: str) -> None:
        if name != self._name:
            return
        self._left -= 1
        if self._left == 0:
            self._act(name)


def _kill(_name: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop(_name: str) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise(name: str) -> None:
    raise InjectedFault(f"the failpoint {name} was told to fail")


_ACTIONS: dict[str, Callable[[str], None]] = {"kill": _kill, "stop": _stop, "raise": _raise}
_hook: Callable[[str], None] | None = None
arm(os.environ.get(VARIABLE))
