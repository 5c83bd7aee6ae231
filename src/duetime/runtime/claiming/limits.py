"""When to ask for jobs that run under limits, so that they and all others take turns."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from duetime.model.limits import Gate
from duetime.model.time import MILLISECOND, SECOND, Instant, Micros
from duetime.runtime.running.handler import Handler
from duetime.runtime.store_clock import monotonic
from duetime.stores.base import LimitedClaims, NextDue

_FIRST_VAIN_PAUSE: Micros = 40 * MILLISECOND
_LONGEST_VAIN_PAUSE: Micros = SECOND // 2


def vain_pause(times: int) -> Micros:
    """Return how long to wait after asking so often in vain for jobs that are there: other workers were faster."""
    return min(_LONGEST_VAIN_PAUSE, _FIRST_VAIN_PAUSE << min(times - 1, 10)) if times > 0 else 0


class LimitedClaimPolicy:
    """Keeps in mind whether limited jobs may be waiting; while no limit is in use, none are asked for."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        gates = {name: handler.options.gate for name, handler in handlers.items()}
        self.limits: Mapping[str, Gate] = {name: gate for name, gate in gates.items() if gate is not None}
        self.in_use = bool(self.limits)
        """Whether there may be limited jobs: tasks of this worker have limits, or the store says so."""
        self._in_store = False
        self.queue_full = False
        """Whether a queue had no slot left in this worker, so that not all limited jobs could be asked for."""
        self._may_start = self.in_use
        self.starved = False
        """Whether limited jobs may wait for slots."""
        self._again_from: Micros | None = None
        self._was_first = False
        self._vain = 0

    @property
    def wanted(self) -> bool:
        """Whether a limited job may be able to start that could not at the last time."""
        return self._may_start or (self._again_from is not None and self._again_from <= monotonic())

    @property
    def waits_for_slots(self) -> bool:
        """Whether limited jobs wait for slots, so that other jobs must not be given them in advance."""
        return self.starved or self.wanted

    def ask_again(self) -> None:
        """Something may have changed: a job came, or one under a limit has ended."""
        self._may_start = self.in_use

    def slot_freed(self) -> None:
        """Ask again if a slot may have been all that was missing at the last time."""
        self._may_start = self._may_start or self.starved or self.queue_full

    def goes_first(self) -> bool:
        """Whether limited jobs are asked for before the others this time: every second time they are wanted."""
        if not self.wanted:
            return False
        self._was_first = not self._was_first
        return self._was_first

    @contextmanager
    def turn(self, *, at_latest: float) -> Generator[None]:
        """Ask, for one kind of slots after the other; what changes meanwhile counts for the next time.

        The next time comes after `at_latest` seconds, since a hint may be lost.
        """
        self._may_start = self.starved = self.queue_full = False
        self._again_from, self._in_store, self.in_use = None, True, True
        try:
            yield
        except BaseException:
            self._may_start = True
            raise
        self._come_back(int(at_latest * SECOND))

    def answered(self, found: LimitedClaims, *, asked: int, now: Instant) -> None:
        """Work out from an answer when to ask again."""
        self.starved = self.starved or len(found.claims) == asked
        self._vain = 0 if found.claims else self._vain + 1
        if found.again_at is not None:
            self._come_back(max(found.again_at - now, vain_pause(self._vain)))

    def look_ahead(self, found: NextDue) -> None:
        """Take in when the next limited job falls due, or that there is none to be asked for."""
        # If it is new that limits are in use, the hint about some job may have been lost.
        self._may_start = self._may_start or (found.limited and not self._in_store)
        self._in_store, self.in_use = found.limited, found.limited or bool(self.limits)
        if not found.limited:
            self._again_from = None
        if found.limited_at is not None:
            self._come_back(found.limited_at - found.now)

    def sooner(self, pause: float | None) -> float | None:
        """Return the pause, or a shorter one when limited jobs are to be asked for before its end."""
        if self._may_start:
            return 0
        if self._again_from is None:
            return pause
        left = max(0, self._again_from - monotonic()) / SECOND
        return left if pause is None else min(pause, left)

    def _come_back(self, wait: Micros) -> None:
        moment = monotonic() + wait
        self._again_from = moment if self._again_from is None else min(self._again_from, moment)
