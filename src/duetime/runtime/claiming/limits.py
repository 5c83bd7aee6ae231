"""When to ask for jobs that run under limits, so that they and all others take turns."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager

from duetime.model.limits import Gate
from duetime.model.time import MILLISECOND, SECOND, Instant, Micros
from duetime.runtime.running.handler import Handler
from duetime.runtime.store_clock import monotonic
from duetime.stores.base import LimitedClaims, NextDue

_FUTILE_PAUSE: Micros = 20 * MILLISECOND
_LONGEST_PAUSE: Micros = SECOND // 2


class LimitedClaimPolicy:
    """Keeps in mind whether limited jobs may be waiting; while no limit is in use, none are asked for."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self.limits: Mapping[str, Gate] = {
            name: handler.options.gate
            for name, handler in handlers.items()
            if handler.options.gate is not None
        }
        self.in_use = bool(self.limits)
        """Whether there may be limited jobs: tasks of this worker have limits, or the store says so."""
        self._in_store = False
        self._may_start = self.in_use
        self._starved = False
        self._full: frozenset[str] = frozenset()
        self._again_from: Micros | None = None
        self._was_first = False
        self._futile = 0

    @property
    def wanted(self) -> bool:
        """Whether a limited job may be able to start that could not at the last time."""
        return self._may_start or (self._again_from is not None and self._again_from <= monotonic())

    @property
    def waits_for_slots(self) -> bool:
        """Whether limited jobs wait for slots, so that other jobs must not be given them in advance."""
        return self._starved or self.wanted

    def ask_again(self) -> None:
        """Something may have changed: a job came, or one under a limit has ended."""
        self._may_start = self.in_use

    def room_made(self, room: Callable[[str], int]) -> None:
        """A slot is free again, which at the last time may have been all that was missing."""
        if self._starved or (self._full and any(room(queue) > 0 for queue in self._full)):
            self._may_start = True

    def learn(self, *, in_use: bool) -> None:
        """Take in whether the store has limits in use; if so, and it was not known, the hint about some job may have been lost."""
        self._may_start = self._may_start or (in_use and not self._in_store)
        self._in_store = in_use
        self.in_use = in_use or bool(self.limits)

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
        self._may_start, self._starved, self._again_from = False, False, None
        self._full = frozenset()
        self._in_store = self.in_use = True
        try:
            yield
        except BaseException:
            self._may_start = True
            raise
        self._come_back(int(at_latest * SECOND))

    def had_no_room(self) -> None:
        """Note that there was no slot to ask for."""
        self._starved = True

    def are_full(self, queues: Iterable[str]) -> None:
        """Note queues that have no slot left in this worker, so that no more of their jobs can be asked for."""
        self._full = self._full.union(queues)

    def answered(self, found: LimitedClaims, *, asked: int, now: Instant) -> None:
        """Work out from an answer when to ask again."""
        self._starved = self._starved or len(found.claims) == asked
        self._futile = 0 if found.claims else self._futile + 1
        if found.again_at is not None:
            # What is said to be there and is not found, because others are at it, is asked for at growing intervals.
            pause = min(_LONGEST_PAUSE, _FUTILE_PAUSE * 2 ** min(self._futile, 10)) if self._futile else 0
            self._come_back(max(found.again_at - now, pause))

    def look_ahead(self, found: NextDue) -> None:
        """Take in when the next limited job falls due, or that there is none to be asked for."""
        self.learn(in_use=found.limited)
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
