"""Claims under limits: how a store goes round the gates, a stretch at a time, until something may start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from duetime.model.job import Claim
from duetime.model.time import Instant
from duetime.model.worker import WorkerId
from duetime.stores.base.values import ClaimRequest, LimitedClaims

_LOOKS: Final = 20
"""How many looks past closed gates one claim takes before it answers that it is not through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSurvey:
    """What one look has found, without locks."""

    hopeful: bool
    """Whether there is anything to claim."""
    again_at: Instant | None
    """When time alone will let in the next job."""
    place: Any
    """Where the next look goes on, in the store's own terms; false when this one came to the end."""
    seen_at: Instant


S = TypeVar("S", bound=LimitSurvey)


@dataclass(slots=True)
class GateWalk:
    """How far one worker's walk round the gates of some tasks has come."""

    place: Any = None
    queues: frozenset[str] = frozenset()
    """Those that every look since it began has seen."""
    hopeless: bool = True
    """Whether nothing was found open since it began."""
    again: list[Instant] = field(default_factory=list[Instant])

    def begin_look(self, demand: ClaimRequest) -> None:
        """Go on for these queues, or begin at the first gate again."""
        queues = frozenset(demand.wanted)
        if not self.place:
            self.hopeless, self.again = True, []
        elif not queues <= self.queues:
            # The gates that lie behind were not looked at for these queues, so that this walk proves nothing.
            self.hopeless = False
        self.queues = queues

    def end_look(self, found: LimitSurvey) -> bool:
        """Move on; return whether the walk went from the first gate to the last and found none open."""
        # Gates that were found open are left behind all the same, or the first ones would starve the last.
        self.place = found.place
        self.hopeless = self.hopeless and not found.hopeful
        self.again += [] if found.again_at is None else [found.again_at]
        return self.hopeless and not self.place


class LimitedClaiming(ABC, Generic[S]):
    """Hands out jobs under limits, and remembers each worker's walk round the gates."""

    _pruned_through = ""

    @cached_property
    def _walks(self) -> defaultdict[tuple[WorkerId, tuple[str, ...]], GateWalk]:
        return defaultdict(GateWalk)

    async def claim_limited(self, demand: ClaimRequest) -> LimitedClaims:
        """Hand out due jobs that limits let through; while none may start, this writes nothing."""
        if demand.pointless:
            return LimitedClaims([], None)
        walk = self._walks[demand.worker, demand.tasks]
        seen_at: Instant = 0
        for _ in range(_LOOKS):
            walk.begin_look(demand)
            found = await self._survey(demand, walk.place)
            seen_at, proved_hopeless = found.seen_at, walk.end_look(found)
            if found.hopeful:
                # Something may be left, and others may have been quicker: to look again costs little.
                return LimitedClaims(await self._seize(demand, found), seen_at)
            if proved_hopeless:
                return LimitedClaims([], min(walk.again, default=None))
        return LimitedClaims([], seen_at)

    async def prune_gates(self) -> int:
        """Forget some of the gates that no job needs."""
        pruned = 0
        for _ in range(_LOOKS):
            some, self._pruned_through = await self._prune_gates(self._pruned_through)
            pruned += some
            if not self._pruned_through:
                break
        return pruned

    @abstractmethod
    async def _survey(self, demand: ClaimRequest, place: Any) -> S:
        """Look for jobs that limits let through, going on where the last look stopped; locks nothing."""

    @abstractmethod
    async def _seize(self, demand: ClaimRequest, found: S) -> list[Claim]:
        """Hand out what was found open and still is, however many others try."""

    @abstractmethod
    async def _prune_gates(self, after: str) -> tuple[int, str]:
        """Forget idle gates of the next stretch; return how many, and where the stretch after it begins."""
