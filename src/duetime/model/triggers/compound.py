"""What triggers made of other triggers share: bounds on their depth, their size and the steps of a search."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

from duetime.errors import InvalidTrigger
from duetime.model import durations
from duetime.model.instants import Instant, Micros
from duetime.model.shown import shown
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.counting import Term, Uncountable, count

MOST_STEPS = 10_000
"""How many steps one search may take, a step for each question to a simple trigger; then there is no more to come."""
HORIZON: Micros = durations.LONGEST
"""How far ahead one search looks: a hundred years."""
DEEPEST = 8
MOST_PARTS = 50


class Spent(Exception):
    """A search has taken all its steps."""


class Budget:
    """The steps that a search from an instant has left, and the last instant that it looks at."""

    __slots__ = ("horizon", "left")

    def __init__(self, instant: Instant, left: int = MOST_STEPS) -> None:
        self.left = left
        self.horizon = instant + HORIZON

    def ask(self, trigger: Trigger, instant: Instant) -> Instant | None:
        """Return what comes after `instant`, at the cost of every simple trigger asked; raise `Spent`."""
        if isinstance(trigger, Compound):
            return trigger.seek(instant, self)
        if self.left < trigger.cost:
            self.left = 0
            raise Spent
        self.left -= trigger.cost
        found = trigger.after(instant)
        return found if found is not None and found <= self.horizon else None

    def search(self, trigger: Trigger, instant: Instant) -> Instant | None:
        """Return what comes after `instant`; when the steps do not suffice to find it, nothing does."""
        try:
            return self.ask(trigger, instant)
        except Spent:
            return None


class Compound(Trigger):
    """A trigger made of triggers."""

    __slots__ = ()

    @abstractmethod
    def inner(self) -> tuple[Trigger, ...]:
        """The triggers it is made of."""

    @abstractmethod
    def made_of(self, inner: tuple[Trigger, ...]) -> Self:
        """Return the same rule over other triggers."""

    @abstractmethod
    def seek(self, instant: Instant, budget: Budget) -> Instant | None:
        """Return the first occurrence strictly after `instant`; raise `Spent` when the budget is."""

    @abstractmethod
    def terms(self) -> list[Term]:
        """Return what it is a union of; raise `Uncountable` if that is too much."""

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant` that a bounded search finds."""
        return Budget(instant).search(self, instant)

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

    def __post_init__(self) -> None:
        _check_triggers(self.parts)
        kind = type(self)
        flat: list[Trigger] = []
        for part in self.parts:
            flat += part.parts if isinstance(part, kind) else [part]
        object.__setattr__(self, "parts", tuple(dict.fromkeys(flat)))
        _check_bounds(self)
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

    def __post_init__(self) -> None:
        _check_triggers((self.trigger,))
        _check_bounds(self)
        object.__setattr__(self, "tz", self.trigger.tz)
        object.__setattr__(self, "times", self.trigger.times)

    def inner(self) -> tuple[Trigger, ...]:
        """The one trigger."""
        return (self.trigger,)

    def made_of(self, inner: tuple[Trigger, ...]) -> Self:
        """Return the same rule over another trigger."""
        (trigger,) = inner
        return replace(self, trigger=trigger)

    def seek(self, instant: Instant, budget: Budget) -> Instant | None:
        """Return what the trigger says."""
        return budget.ask(self.trigger, instant)

    def after(self, instant: Instant) -> Instant | None:
        """Return what the trigger says."""
        return self.trigger.after(instant)

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


def _check_bounds(trigger: Compound) -> None:
    if (deep := _depth(trigger)) > DEEPEST:
        raise InvalidTrigger(
            f"a trigger may be nested {DEEPEST} deep, not {deep}; split it into two schedules"
        )
    if not 1 <= (size := _size(trigger)) <= MOST_PARTS:
        raise InvalidTrigger(
            f"a trigger has from 1 to {MOST_PARTS} parts, not {size}; split it into two schedules"
        )


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
