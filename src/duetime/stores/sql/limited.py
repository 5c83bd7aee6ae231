"""Claims under limits: goes round the gates, some at each look, and remembers how far it has come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from duetime.model.instants import Instant
from duetime.model.worker import WorkerId
from duetime.stores.base import Demand, LimitedClaims
from duetime.stores.sql.driver import Driver
from duetime.stores.sql.loader import Statements
from duetime.stores.sql.scripts import limits

_LOOKS: Final = 20
"""How many looks past closed gates one claim takes before it answers that it is not through."""


@dataclass(slots=True)
class _Walk:
    """How far one worker's walk round the gates of some tasks has come."""

    places: Mapping[str, limits.Place] = field(default_factory=dict[str, limits.Place])
    queues: frozenset[str] = frozenset()
    """Those that every look since it began has seen."""
    hopeless: bool = True
    """Whether nothing was found open since it began."""
    again: list[Instant] = field(default_factory=list[Instant])

    @property
    def proved_hopeless(self) -> bool:
        """Whether it went from the first gate to the last and found none open."""
        return self.hopeless and not self.places


class LimitedClaimer:
    """One claimer's walks round the gates."""

    def __init__(self, driver: Driver, sql: Statements, *, one_statement: bool) -> None:
        self._driver = driver
        self._sql = sql
        self._one_statement = one_statement
        self._walks: defaultdict[tuple[WorkerId, tuple[str, ...]], _Walk] = defaultdict(_Walk)
        self._pruned_through = ""

    async def claim(self, demand: Demand) -> LimitedClaims:
        """Hand out due jobs that limits let through; while none may start, this writes nothing."""
        if demand.limit <= 0 or not demand.queues or not demand.tasks:
            return LimitedClaims([], None)
        walk = self._walks[demand.worker, demand.tasks]
        seen_at: Instant = 0
        for _ in range(_LOOKS):
            found = await self._look(demand, walk)
            seen_at = found.seen_at
            if found.hopeful:
                if new := limits.missing(demand, found):
                    # Not in the transaction that claims: others who add the same rows would wait for its end.
                    await self._driver.write(partial(limits.add_gates, self._sql, new), atomic=False)
                return await self._driver.write(partial(self._seize, demand, found), rows=demand.limit)
            if walk.proved_hopeless:
                return LimitedClaims([], min(walk.again, default=None))
        return LimitedClaims([], seen_at)

    async def prune(self) -> int:
        """Forget some of the gates that no job needs."""
        pruned = 0
        for _ in range(_LOOKS):
            some, self._pruned_through = await self._driver.write(
                partial(limits.prune, self._sql, self._pruned_through), rows=None
            )
            pruned += some
            if not self._pruned_through:
                break
        return pruned

    async def _look(self, demand: Demand, walk: _Walk) -> limits.Survey:
        queues = frozenset(queue for queue, most in demand.queues if most > 0)
        if not walk.places:
            walk.hopeless, walk.again = True, []
        elif not queues <= walk.queues:
            # The gates that lie behind were not looked at for these queues, so that this walk proves nothing.
            walk.hopeless = False
        walk.queues = queues
        found = await self._driver.read(partial(limits.survey, self._sql, demand, walk.places))
        # Gates that were found open are left behind all the same, or the first ones would starve the last.
        walk.places = found.places
        walk.hopeless = walk.hopeless and not found.hopeful
        walk.again += [] if found.again_at is None else [found.again_at]
        return found

    def _seize(self, demand: Demand, found: limits.Survey) -> limits.Seizure:
        return limits.seize(self._sql, demand, found, one_statement=self._one_statement)
