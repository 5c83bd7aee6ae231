"""When to ask for jobs that run under limits, so that they and all others take turns."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from duetime.model.instants import MILLISECOND, SECOND, Instant, Micros
from duetime.model.limit import Gate
from duetime.runtime.handler import Handler
from duetime.runtime.timekeeper import monotonic
from duetime.stores.base import LimitedClaims, NextDue

_FUTILE_PAUSE: Micros = 20 * MILLISECOND
_LONGEST_PAUSE: Micros = SECOND // 2


class LimitedTurns:
    """Keeps in mind whether limited jobs may be waiting; while no limit is in use, nobody asks for them."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self.limits: Mapping[str, Gate] = {
            name: handler.options.gate
            for name, handler in handlers.items()
            if handler.options.gate is not None
        }
        self.in_use = bool(self.limits)
        self._stirred = self.in_use
        self._starved = False
        self._again_from: Micros | None = None
        self._was_first = False
        self._futile = 0

    @property
    def wanted(self) -> bool:
        """Whether a limited job may be able to start that could not at the last time."""
        return self._stirred or (self._again_from is not None and self._again_from <= monotonic())

    @property
    def hungry(self) -> bool:
        """Whether limited jobs wait for slots, so that others must not take them in advance."""
        return self._starved or self.wanted

    def stir(self) -> None:
        """Something may have changed: a job came, or one under a limit has ended."""
        self._stirred = self.in_use

    def room_made(self) -> None:
        """A slot is free again, which at the last time may have been all that was missing."""
        self._stirred = self._stirred or self._starved

    def learn(self, *, in_use: bool) -> None:
        """Take in whether the store has limits in use, beside those of this worker's tasks."""
        self._stirred = self._stirred or (in_use and not self.in_use)
        self.in_use = in_use or bool(self.limits)

    def goes_first(self) -> bool:
        """Whether limited jobs are asked for before the others this time: every second time they are wanted."""
        if not self.wanted:
            return False
        self._was_first = not self._was_first
        return self._was_first

    @contextmanager
    def turn(self) -> Generator[None]:
        """Ask, for one kind of slots after the other; what stirs meanwhile counts for the next time."""
        self._stirred, self._starved, self._again_from = False, False, None
        try:
            yield
        except BaseException:
            self._stirred = True
            raise

    def had_no_room(self) -> None:
        """Note that there was no slot to ask for."""
        self._starved = True

    def answered(self, found: LimitedClaims, *, asked: int, now: Instant) -> None:
        """Work out from an answer when to ask again."""
        self._starved = self._starved or len(found.claims) == asked
        self._futile = 0 if found.claims else self._futile + 1
        if found.again_at is not None:
            # What is said to be there and is not found, because others are at it, is asked for at growing intervals.
            pause = min(_LONGEST_PAUSE, _FUTILE_PAUSE * 2 ** min(self._futile, 10)) if self._futile else 0
            self._come_back(max(found.again_at - now, pause))

    def look_ahead(self, found: NextDue) -> None:
        """Take in when the next limited job falls due."""
        self.learn(in_use=found.limited)
        if found.limited_at is not None:
            self._come_back(found.limited_at - found.now)

    def sooner(self, pause: float | None) -> float | None:
        """Return the pause, or a shorter one when limited jobs are to be asked for before its end."""
        if self._stirred:
            return 0
        if self._again_from is None:
            return pause
        left = max(0, self._again_from - monotonic()) / SECOND
        return left if pause is None else min(pause, left)

    def _come_back(self, wait: Micros) -> None:
        moment = monotonic() + wait
        self._again_from = moment if self._again_from is None else min(self._again_from, moment)
