"""Passes on what a heartbeat has seen and no hint may have told."""

from __future__ import annotations

from typing import TypeAlias

from duetime.model.instants import Instant
from duetime.model.job import Token
from duetime.runtime.crowd import Crowd
from duetime.runtime.dispatcher import Dispatcher
from duetime.runtime.fetcher import Fetcher
from duetime.runtime.firing import ScheduleFirer
from duetime.runtime.janitor import Janitor
from duetime.stores.base import Pulse

_Fleet: TypeAlias = tuple[int, Instant]
"""How many workers live, and when the last of them was started."""


class Sightings:
    """Has each service look for what it is there for."""

    def __init__(
        self,
        *,
        crowd: Crowd,
        dispatcher: Dispatcher,
        fetcher: Fetcher,
        firer: ScheduleFirer,
        janitor: Janitor,
    ) -> None:
        self._crowd = crowd
        self._dispatcher = dispatcher
        self._fetcher = fetcher
        self._firer = firer
        self._janitor = janitor
        self._fleet: _Fleet | None = None
        self._strays: frozenset[Token] = frozenset()

    def take_in(self, pulse: Pulse, *, registered_at: Instant) -> None:
        """Act on an answer to a heartbeat of the worker that was registered at this instant."""
        self._recall_strays(pulse.held)
        if pulse.workers:
            self._crowd.workers = pulse.workers
            self._janitor.count_again()
            self._compare((pulse.workers, pulse.newest), registered_at)
        if pulse.lease_ends is not None:
            self._janitor.expect_end_of_lease(pulse.lease_ends - pulse.now)
        if pulse.limited:
            self._fetcher.learn_limits()
        if pulse.sight is None:
            return
        if pulse.sight.due_at is not None:
            self._fetcher.expect(pulse.sight.due_at - pulse.now)
        self._firer.expect(pulse.sight, pulse.now)
        if pulse.sight.orphans:
            self._janitor.sweep_soon()

    def _compare(self, fleet: _Fleet, registered_at: Instant) -> None:
        """Have the workers looked at anew if they are others than before; those that came earlier are known at first."""
        before, self._fleet = self._fleet, fleet
        if fleet != before and (before is not None or fleet[1] > registered_at):
            self._janitor.look_soon()

    def _recall_strays(self, held: frozenset[Token]) -> None:
        """Take up claims the store has under this worker that it does not know of."""
        strays = frozenset(t for t in self._dispatcher.unknown(held) if not self._fetcher.holds(t))
        # Seen at two pulses, it is not one whose outcome was being written while the store was asked.
        self._janitor.take_strays(self._fetcher.recall(strays & self._strays))
        self._strays = strays
