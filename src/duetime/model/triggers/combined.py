"""Triggers made of triggers: unions, intersections, bounds in time and number, jitter, and calendars taken away."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from duetime.errors import InvalidTrigger
from duetime.model.text import counted, shown
from duetime.model.time import DAY, LATEST, MILLISECOND, Instant, Micros, describe_duration, in_words
from duetime.model.triggers.base import (
    NEVER,
    NoOccurrence,
    SearchBudget,
    SearchMemory,
    Trigger,
    check_instants,
    check_length,
    check_times,
    draw_number,
    set_fields,
)
from duetime.model.triggers.calendars import Calendar

DEEPEST_TRIGGER = 8
MOST_TRIGGER_PARTS = 50

_WORTH_KEEPING = 20
"""The answer of a search that took at least this many steps is remembered."""


@dataclass(frozen=True, slots=True)
class CombinedTrigger(Trigger):
    """A trigger made of triggers, shown in the zone of the first."""

    tz: str = field(init=False, repr=False, compare=False)
    times: int | None = field(init=False, repr=False, compare=False)
    cost: int = field(init=False, repr=False, compare=False)
    memory: SearchMemory | None = field(init=False, repr=False, compare=False)
    """What a long search has found; `None` where each question counts from another start, so that nothing is known."""

    def __post_init__(self) -> None:
        inner = self.inner()
        _check_triggers(inner)
        if (deep := _depth(self)) > DEEPEST_TRIGGER:
            raise InvalidTrigger(f"a trigger may be nested {DEEPEST_TRIGGER} deep, not {deep}; split it")
        if not 1 <= (size := _size(self)) <= MOST_TRIGGER_PARTS:
            raise InvalidTrigger(f"a trigger has from 1 to {MOST_TRIGGER_PARTS} parts, not {size}")
        memory = SearchMemory() if all(map(_has_start, inner)) else None
        cost = sum(part.cost for part in inner)
        set_fields(self, tz=inner[0].tz, times=inner[0].times, cost=cost, memory=memory)

    @abstractmethod
    def inner(self) -> tuple[Trigger, ...]:
        """The triggers it is made of."""

    @abstractmethod
    def with_each(self, change: Callable[[Trigger], Trigger]) -> Self:
        """Return the same rule over triggers that are changed."""

    @abstractmethod
    def look(self, instant: Instant, search: SearchBudget) -> Instant | NoOccurrence:
        """Return what `seek` does, without a memory."""

    def seek(self, instant: Instant, search: SearchBudget) -> Instant | NoOccurrence:
        """Return the first occurrence strictly after `instant`, or how far there is nothing.

        A search that took long is not repeated: the next one goes on where it ended.
        """
        since = instant
        if self.memory is not None and (known := self.memory.answer) is not None and known[0] <= instant:
            low, answer = known
            if isinstance(answer, NoOccurrence):
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

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant` that a bounded search finds."""
        found = self.first(instant)
        return None if isinstance(found, NoOccurrence) else found

    def seeded(self, name: str) -> Self:
        """Return this rule with all that is drawn in it spread by `name`."""
        return self.with_each(lambda trigger: trigger.seeded(name))

    def anchored(self, instant: Instant) -> Self:
        """Return this rule with all that has no start in it counting from `instant`."""
        return self.with_each(lambda trigger: trigger.anchored(instant))


def _check_triggers(triggers: tuple[Trigger, ...]) -> None:
    for trigger in triggers:
        if not isinstance(trigger, Trigger):
            raise InvalidTrigger(f"only triggers such as cron('0 9 * * *') combine, not {shown(trigger)}")


def _has_start(trigger: Trigger) -> bool:
    if isinstance(trigger, CombinedTrigger):
        return trigger.memory is not None
    return trigger.anchored(0) is trigger


def _depth(trigger: Trigger) -> int:
    return 1 + max(map(_depth, trigger.inner()), default=0) if isinstance(trigger, CombinedTrigger) else 0


def _size(trigger: Trigger) -> int:
    return sum(map(_size, trigger.inner())) if isinstance(trigger, CombinedTrigger) else 1


@dataclass(frozen=True, slots=True)
class SeveralTriggers(CombinedTrigger):
    """A rule over triggers of equal rank."""

    joined_by: ClassVar[str]

    parts: tuple[Trigger, ...]

    def __post_init__(self) -> None:
        _check_triggers(self.parts)
        flat: list[Trigger] = []
        for part in self.parts:
            flat += part.parts if isinstance(part, type(self)) else [part]
        set_fields(self, parts=tuple(dict.fromkeys(flat)))
        CombinedTrigger.__post_init__(self)
        for part in self.parts:
            if part.times is not None:
                text = f"one part cannot be limited to {counted(part.times, 'run')}: runs are counted for the schedule as a whole"
                raise InvalidTrigger(f"{text}; limit all of it, as in (one | other).at_most({part.times})")

    def inner(self) -> tuple[Trigger, ...]:
        """The parts."""
        return self.parts

    def with_each(self, change: Callable[[Trigger], Trigger]) -> Self:
        """Return the same rule over parts that are changed."""
        return replace(self, parts=tuple(map(change, self.parts)))

    def describe(self) -> str:
        """Say the rule in English."""
        return self.joined_by.join(map(quoted, self.parts))


@dataclass(frozen=True, slots=True)
class TriggerWrapper(CombinedTrigger):
    """A rule over one trigger, which keeps the trigger's zone, limit, due times and count unless it says otherwise."""

    trigger: Trigger

    def inner(self) -> tuple[Trigger, ...]:
        """The one trigger."""
        return (self.trigger,)

    def with_each(self, change: Callable[[Trigger], Trigger]) -> Self:
        """Return the same rule over the trigger as it is changed."""
        return replace(self, trigger=change(self.trigger))

    def look(self, instant: Instant, search: SearchBudget) -> Instant | NoOccurrence:
        """Return what the trigger says."""
        return self.trigger.seek(instant, search)

    def due(self, occurrence: Instant) -> Instant:
        """Return what the trigger says."""
        return self.trigger.due(occurrence)

    def count(self, after: Instant, until: Instant) -> int | None:
        """Return what the trigger says."""
        return self.trigger.count(after, until)


def quoted(trigger: Trigger) -> str:
    """Say a trigger in English, in parentheses if it is several."""
    return f"({trigger.describe()})" if isinstance(trigger, SeveralTriggers) else trigger.describe()


@dataclass(frozen=True, slots=True)
class Union(SeveralTriggers):
    """Every occurrence of every part, each instant once."""

    kind = "union"
    joined_by = "; or "

    def look(self, instant: Instant, search: SearchBudget) -> Instant | NoOccurrence:
        """Return the earliest of what the parts say, if none that was searched for in vain can come before it."""
        if search.left <= 0:
            return NoOccurrence(instant)
        until, through = search.until, LATEST
        best: Instant | None = None
        waiting = len(self.parts)
        # What a simple part says bounds the search for the others.
        for part in sorted(self.parts, key=lambda part: isinstance(part, CombinedTrigger)):
            # Each gets its share of the steps, and enough of them to get on.
            kept = search.left - max(search.left // waiting, 2 * part.cost)
            search.left -= kept
            found = part.seek(instant, search)
            search.left += kept
            waiting -= 1
            if isinstance(found, NoOccurrence):
                through = min(through, found.through)
            elif best is None or found < best:
                best = found
                search.until = min(until, found)
        search.until = until
        return best if best is not None and best <= through + 1 else NoOccurrence(through)

    def due(self, occurrence: Instant) -> Instant:
        """Return the earliest due time among the parts that come at `occurrence`."""
        coming = (part for part in self.parts if part.comes_at(occurrence))
        return min((part.due(occurrence) for part in coming), default=occurrence)


@dataclass(frozen=True, slots=True)
class Intersection(SeveralTriggers):
    """The instants that all parts have in common, to the microsecond."""

    kind = "intersection"
    joined_by = "; only when also "

    def look(self, instant: Instant, search: SearchBudget) -> Instant | NoOccurrence:
        """Return the first common instant, by going on from the latest that a part says."""
        first, *others = self.parts
        while True:
            earliest = first.seek(instant, search)
            if isinstance(earliest, NoOccurrence):
                return earliest
            latest = earliest
            for part in others:
                following = part.seek(latest - 1, search)
                if isinstance(following, NoOccurrence):
                    return following
                latest = following
            if latest == earliest:
                return latest
            instant = latest - 1
            if instant >= search.until:
                return NoOccurrence(instant)

    def due(self, occurrence: Instant) -> Instant:
        """Return the latest due time among the parts."""
        return max(part.due(occurrence) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Except(TriggerWrapper):
    """The occurrences of a trigger outside of a calendar, which is read in the trigger's zone if it has none of its own."""

    kind = "except"

    calendar: Calendar

    def __post_init__(self) -> None:
        if not isinstance(self.calendar, Calendar):
            raise InvalidTrigger(
                f"- takes a calendar such as calendars.weekends(), not {self.calendar!r:.80}"
            )
        if isinstance(self.trigger, Except):
            set_fields(self, calendar=self.trigger.calendar | self.calendar, trigger=self.trigger.trigger)
        TriggerWrapper.__post_init__(self)
        set_fields(self, calendar=self.calendar.placed(self.tz))

    def look(self, instant: Instant, search: SearchBudget) -> Instant | NoOccurrence:
        """Return the first occurrence outside of the calendar, passing each excluded stretch in one step."""
        found = self.trigger.seek(instant, search)
        while not isinstance(found, NoOccurrence) and (end := self.calendar.until(found)) is not None:
            if end > search.until:
                return NoOccurrence(end - 1)
            found = self.trigger.seek(end - 1, search)
        return found

    def count(self, after: Instant, until: Instant) -> int | None:
        """Return None: which occurrences a calendar leaves, takes a walk."""
        return Trigger.count(self, after, until)

    def describe(self) -> str:
        """Say the rule in English."""
        return f"{quoted(self.trigger)}, except {self.calendar.describe(known_tz=self.tz)}"


@dataclass(frozen=True, slots=True)
class Between(TriggerWrapper):
    """The occurrences of a trigger from `start` to `end`, both included."""

    kind = "between"

    start: Instant | None = None
    end: Instant | None = None

    def __post_init__(self) -> None:
        TriggerWrapper.__post_init__(self)
        if self.start is None and self.end is None:
            raise InvalidTrigger("between() needs a start or an end")
        check_instants(start=self.start, end=self.end)
        if self.start is not None and self.end is not None and self.end < self.start:
            raise InvalidTrigger(f"end must not lie before start {in_words(self.start)}")

    def look(self, instant: Instant, search: SearchBudget) -> Instant | NoOccurrence:
        """Return the first occurrence after `instant` that lies between; past the end, there is none."""
        until = search.until
        search.until = min(until, self._end)
        start = instant if self.start is None else max(instant, self.start - 1)
        found = self.trigger.seek(start, search)
        search.until = until
        if isinstance(found, NoOccurrence):
            return NEVER if found.through >= self._end else found
        return found if found <= self._end else NEVER

    def count(self, after: Instant, until: Instant) -> int | None:
        """Return how many occurrences of the trigger lie between."""
        start = after if self.start is None else max(after, self.start - 1)
        return self.trigger.count(start, min(until, self._end))

    def describe(self) -> str:
        """Say the rule in English."""
        text = quoted(self.trigger)
        if self.start is not None:
            text += f", from {in_words(self.start)}"
        if self.end is not None:
            text += f", until {in_words(self.end)}"
        return text

    @property
    def _end(self) -> Instant:
        return LATEST if self.end is None else self.end


@dataclass(frozen=True, slots=True)
class AtMost(TriggerWrapper):
    """The occurrences of a trigger until `most` of them have become jobs; skipped ones do not count."""

    kind = "at_most"

    most: int

    def __post_init__(self) -> None:
        TriggerWrapper.__post_init__(self)
        check_times(self.most, what="at_most()")
        set_fields(self, times=min(self.most, self.trigger.times or self.most))

    def describe(self) -> str:
        """Say the rule in English."""
        return f"{quoted(self.trigger)}, at most {'once' if self.most == 1 else f'{self.most} times'}"


@dataclass(frozen=True, slots=True)
class Jitter(TriggerWrapper):
    """A trigger whose jobs fall due less than `most` later, drawn from the seed and the occurrence: alike in all processes."""

    kind = "jitter"

    most: Micros
    seed: str = ""

    def __post_init__(self) -> None:
        TriggerWrapper.__post_init__(self)
        check_length(self.most, what="jitter", low=MILLISECOND, high=DAY, expected="from 1 ms to 1 day")
        if not isinstance(self.seed, str):
            raise InvalidTrigger(f"the seed of a jitter is text, not {type(self.seed).__name__}")

    def due(self, occurrence: Instant) -> Instant:
        """Return when the job of an occurrence falls due."""
        draw = draw_number(f"jitter:{self.seed}:{occurrence}")
        return min(self.trigger.due(occurrence) + draw % self.most, LATEST)

    def seeded(self, name: str) -> Self:
        """Return this rule drawing from `name`, unless it already has a seed."""
        return replace(self, trigger=self.trigger.seeded(name), seed=self.seed or name)

    def describe(self) -> str:
        """Say the rule in English."""
        return f"{quoted(self.trigger)}, each up to {describe_duration(self.most)} later"
