"""Fills the hold with what falls due soon: of any task one job for each slot, of those with short runs what ends in a moment."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.model.instants import Micros
from duetime.runtime.ahead import AheadTurns
from duetime.runtime.appetite import Appetite
from duetime.runtime.asking import Asking
from duetime.runtime.crowd import Crowd
from duetime.runtime.demands import Demands
from duetime.runtime.hold import Hold
from duetime.runtime.lanes import Lane
from duetime.runtime.timekeeper import monotonic


@dataclass(slots=True, kw_only=True)
class Stock:
    """Claims ahead, and says how much may be."""

    asking: Asking
    demands: Demands
    hold: Hold
    appetite: Appetite
    turns: AheadTurns
    crowd: Crowd
    slots_worth: int
    window: Micros
    _lasting: bool = False
    """Whether what was left the last time is of tasks whose runs last, so that it needs a slot each."""

    def budget(self) -> int:
        """How many claims to hold: one for each slot or, if that is more, this worker's share of what ends in a moment."""
        if self._lasting:
            return self.slots_worth
        return max(self.slots_worth, self.appetite.in_a_moment() // self.crowd.workers)

    async def fill(self) -> bool:
        """Take what falls due within the window, and tell whether there was any that may be taken ahead."""
        taken = 0
        self._lasting = False
        # Not whether there is room afterwards: some may have started, and made room, since it was asked for.
        all_room = not self.hold.room
        for lane in self.demands.lanes():
            brisk = lane._replace(tasks=self.appetite.brisk_of(lane.tasks))
            if brisk == lane:
                found, filled = await self._take(lane, self.hold.room)
            else:
                found, filled = await self._take(lane, self.slots_worth - len(self.hold))
                if brisk.tasks and (filled or len(self.hold) >= self.slots_worth):
                    more, beyond = await self._take(brisk, self.hold.room)
                    found += more
                    self._lasting |= not beyond
            taken += found
            all_room |= filled
        self.turns.taken(taken, all_room=all_room, now=monotonic())
        return taken > 0

    async def _take(self, lane: Lane, room: int) -> tuple[int, bool]:
        """Hold jobs of a lane, and tell how many were found and whether that is all there was room for."""
        room = min(room, self.hold.room, self.demands.share(lane))
        if room <= 0:
            return 0, False
        claims = await self.asking.claim(self.demands.ahead(lane, room, window=self.window))
        for claim in claims:
            self.hold.add(claim)
        return len(claims), len(claims) == room
