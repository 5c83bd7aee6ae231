"""What triggers made of other triggers share: bounds on their depth and size, and the memory of a long search."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

from duetime.errors import InvalidTrigger
from duetime.model.instants import LATEST, Instant
from duetime.model.shown import shown
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.counting import Term, Uncountable, count
from duetime.model.triggers.searching import HORIZON, MOST_STEPS, Memory, Nothing, Search

DEEPEST = 8
MOST_PARTS = 50

_WORTH_KEEPING = 20
"""The answer of a search that took at least this many steps is remembered."""


class Compound(Trigger):
    """A trigger made of triggers."""

    __slots__ = ()

    memory: Memory | None
    """What a long search has found; `None` where each question counts from another start, so that nothing is known."""

    @abstractmethod
    def inner(self) -> tuple[Trigger, ...]:
        """The triggers it is made of."""

    @abstractmethod
    def made_of(self, inner: tuple[Trigger, ...]) -> Self:
        """Return the same rule over other triggers."""

    @abstractmethod
    def look(self, instant: Instant, search: Search) -> Instant | Nothing:
        """Return what `seek` does, without a memory."""

    @abstractmethod
    def terms(self) -> list[Term]:
        """Return what it is a union of; raise `Uncountable` if that is too much."""

    def seek(self, instant: Instant, search: Search) -> Instant | Nothing:
        """Return the first occurrence strictly after `instant`, or how far there is nothing.

        A search that took long is not repeated: the next one goes on where it ended.
        """
        since = instant
        if self.memory is not None and (known := self.memory.answer) is not None and known[0] <= instant:
            low, answer = known
            if isinstance(answer, Nothing):
                if answer.through >= search.until:
                    return answer
                if answer.through >= instant:
                    since, instant = low, answer.through
            elif instant < answer:
                return answer
        left = search.left
        found = self.look(instant, search)
        if left - search.left >= _WORTH_KEEPING and self.memory is not None:
            self.memory.answer = since, found
        return found

    def first(
        self, instant: Instant, *, until: Instant = LATEST, steps: int = MOST_STEPS
    ) -> Instant | Nothing:
        """Return the first occurrence strictly after `instant`, or how far there is nothing, up to a hundred years."""
        return self.seek(instant, Search(min(until, instant + HORIZON), steps))

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant` that a bounded search finds."""
        found = self.seek(instant, Search(instant + HORIZON))
        return None if isinstance(found, Nothing) else found

    def count(self, after: Instant, until: Instant) -> int | None:
        """Return how many occurrences lie in `after < occurrence <= until`, or None if that takes a walk."""
        try:
            return count(self.terms(), after, until)
        except Uncountable:
            return None

    def seeded(self, name: str) -> Self:
        """Return this rule with all that is drawn in it spread by `name`."""
        return self.made_of(tuple(trigger.seeded(name) for trigger in self.inner()))

    def anchored(self, instant: Instant) -> Self:
        """Return this rule with all that has no start in it counting from `instant`."""
        return self.made_of(tuple(trigger.anchored(instant) for trigger in self.inner()))


@dataclass(frozen=True, slots=True)
class Several(Compound):
    """A rule over triggers of equal rank, shown in the zone of the first."""

    parts: tuple[Trigger, ...]
    tz: str = field(init=False, repr=False, compare=False)
    cost: int = field(init=False, repr=False, compare=False)
    memory: Memory | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_triggers(self.parts)
        kind = type(self)
        flat: list[Trigger] = []
        for part in self.parts:
            flat += part.parts if isinstance(part, kind) else [part]
        object.__setattr__(self, "parts", tuple(dict.fromkeys(flat)))
        _settle(self)
        for part in self.parts:
            if part.times is not None:
                text = f"one part cannot be limited to {part.times} runs: runs are counted for the schedule as a whole"
                raise InvalidTrigger(f"{text}; limit all of it, as in (one | other).at_most({part.times})")
        object.__setattr__(self, "tz", self.parts[0].tz)

    def inner(self) -> tuple[Trigger, ...]:
        """The parts."""
        return self.parts

    def made_of(self, inner: tuple[Trigger, ...]) -> Self:
        """Return the same rule over other parts."""
        return replace(self, parts=inner)


@dataclass(frozen=True, slots=True)
class Wrapper(Compound):
    """A rule over one trigger, which keeps the trigger's zone, limit, due times and count unless it says otherwise."""

    trigger: Trigger
    tz: str = field(init=False, repr=False, compare=False)
    times: int | None = field(init=False, repr=False, compare=False)
    cost: int = field(init=False, repr=False, compare=False)
    memory: Memory | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_triggers((self.trigger,))
        _settle(self)
        object.__setattr__(self, "tz", self.trigger.tz)
        object.__setattr__(self, "times", self.trigger.times)

    def inner(self) -> tuple[Trigger, ...]:
        """The one trigger."""
        return (self.trigger,)

    def made_of(self, inner: tuple[Trigger, ...]) -> Self:
        """Return the same rule over another trigger."""
        (trigger,) = inner
        return replace(self, trigger=trigger)

    def look(self, instant: Instant, search: Search) -> Instant | Nothing:
        """Return what the trigger says."""
        return self.trigger.seek(instant, search)

    def due(self, occurrence: Instant) -> Instant:
        """Return what the trigger says."""
        return self.trigger.due(occurrence)

    def terms(self) -> list[Term]:
        """Return those of the trigger."""
        return terms_of(self.trigger)


def _check_triggers(triggers: tuple[Trigger, ...]) -> None:
    for trigger in triggers:
        if not isinstance(trigger, Trigger):
            text = "triggers are combined with triggers, such as cron('0 9 * * *') or every('15m')"
            raise InvalidTrigger(f"{text}, not {shown(trigger)}")


def _settle(trigger: Compound) -> None:
    """Check the bounds of a trigger, and derive what it shares with every other."""
    if (deep := _depth(trigger)) > DEEPEST:
        raise InvalidTrigger(
            f"a trigger may be nested {DEEPEST} deep, not {deep}; split it into two schedules"
        )
    if not 1 <= (size := _size(trigger)) <= MOST_PARTS:
        raise InvalidTrigger(
            f"a trigger has from 1 to {MOST_PARTS} parts, not {size}; split it into two schedules"
        )
    object.__setattr__(trigger, "cost", sum(part.cost for part in trigger.inner()))
    object.__setattr__(trigger, "memory", Memory() if all(map(_has_start, trigger.inner())) else None)


def _has_start(trigger: Trigger) -> bool:
    if isinstance(trigger, Compound):
        return trigger.memory is not None
    return trigger.anchored(0) is trigger


def _depth(trigger: Trigger) -> int:
    return 1 + max(map(_depth, trigger.inner()), default=0) if isinstance(trigger, Compound) else 0


def _size(trigger: Trigger) -> int:
    return sum(map(_size, trigger.inner())) if isinstance(trigger, Compound) else 1


def terms_of(trigger: Trigger) -> list[Term]:
    """Return what a trigger is a union of: itself, unless it is made of others."""
    return trigger.terms() if isinstance(trigger, Compound) else [Term((trigger,))]


def quoted(trigger: Trigger) -> str:
    """Say a trigger in English, in parentheses if it is several."""
    return f"({trigger.describe()})" if isinstance(trigger, Several) else trigger.describe()
