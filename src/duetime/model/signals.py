"""What a handler raises or returns to say how its run shall end."""

from __future__ import annotations

from typing import TypeAlias

from duetime.model import durations
from duetime.model.durations import Duration
from duetime.model.instants import Micros


class Cancel(Exception):
    """The job ends here, cancelled."""

    def __init__(self, reason: str = "cancelled by its handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Snooze(Exception):
    """The job runs again after a while; this costs it no retry."""

    def __init__(self, delay: Duration) -> None:
        super().__init__(delay)
        self.delay: Micros = durations.parse(delay, what="delay")


class Retry(Exception):
    """The run has failed; the job is tried again, if it has retries left, after `delay` or the usual wait."""

    def __init__(self, delay: Duration | None = None, reason: str | None = None) -> None:
        super().__init__(delay, reason)
        self.delay: Micros | None = None if delay is None else durations.parse(delay, what="delay")
        self.reason = reason

    def __str__(self) -> str:
        return "the handler asked for another try" if self.reason is None else self.reason


Signal: TypeAlias = Cancel | Snooze | Retry
