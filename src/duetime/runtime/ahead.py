"""When to claim what falls due soon."""

from __future__ import annotations

from duetime.model.instants import Micros


class AheadTurns:
    """Says when to claim ahead: before a job is due, and no sooner than what comes after it can be taken along."""

    def __init__(self, window: Micros) -> None:
        self._half = window // 2
        # Not the whole window: due times are often round, and what is held starts at the very moment before.
        self._reach = window * 15 // 16
        self._next: Micros = 0
        self._fruitful = False
        self.left_some = False
        """Whether there was more within the window than could be held."""

    def pause(self, wait: Micros, *, now: Micros, roomy: bool) -> Micros:
        """Return how long to wait before the next claim ahead, 0 for not at all, if the next job is due after `wait`."""
        if self.left_some and wait <= self._reach:
            # Once enough of what is held has started there is room again; what is due sooner is claimed when it is.
            return 0 if roomy else wait
        early = max(0, self._next - now)
        return 0 if wait <= early else max(early, wait - self._reach)

    def catches_up(self, *, now: Micros, roomy: bool) -> bool:
        """Whether to claim ahead although jobs are due, which follow one another faster than they can be asked for."""
        return roomy and (self._fruitful or self._next <= now)

    def taken(self, count: int, *, all_room: bool, now: Micros) -> None:
        """Take in what a claim ahead has brought, and whether it has filled the room that there was for it."""
        self._next = now + self._half
        self._fruitful = count > 0
        self.left_some = all_room

    def room_made(self) -> None:
        """Let the next claim come at once: enough of what was held has started."""
        self.left_some = False
        self._next = 0
