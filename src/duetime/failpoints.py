"""Places where a test can make the process die, freeze or fail; in production they do nothing.

`DUETIME_FAILPOINT=after:claim:kill:3` kills the process at the third commit of a claim, before its answer is
read. The actions are `kill`, `stop` (freeze until SIGCONT) and `raise`; without a number, the first time.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from duetime.errors import ConfigError

VARIABLE = "DUETIME_FAILPOINT"

_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class InjectedFault(Exception):
    """Raised by a failpoint whose action is `raise`."""


@dataclass(slots=True)
class ArmedFailpoint:
    """Acts at the nth visit of one place."""

    place: str
    action: str
    visits_left: int

    def visit(self) -> None:
        """Count a visit, and act if it is the one that was asked for."""
        self.visits_left -= 1
        if self.visits_left == 0 and self.action == "raise":
            raise InjectedFault(f"the failpoint {self.place} was told to fail")
        if self.visits_left == 0:
            os.kill(os.getpid(), _SIGNALS[self.action])


def failpoint(name: str) -> None:
    """Do what the environment asks for at this place; nothing otherwise."""
    if armed is not None and armed.place == name:
        armed.visit()


def arm(setting: str | None) -> None:
    """Install a setting, as the environment would at import; `None` removes it."""
    global armed  # noqa: PLW0603 -- there is one failpoint per process
    armed = None
    if not setting:
        return
    head, _, last = setting.rpartition(":")
    head, visits = (head, int(last)) if last.isdigit() else (setting, 1)
    place, _, action = head.rpartition(":")
    if not place or action not in {*_SIGNALS, "raise"}:
        raise ConfigError(
            f"{VARIABLE}={setting!r} is not understood; write place:action[:nth], e.g. after:claim:kill"
        )
    armed = ArmedFailpoint(place, action, visits)


armed: ArmedFailpoint | None = None
arm(os.environ.get(VARIABLE))
