"""The occurrences that a stretch of time has passed over, told in bounded steps however long it was."""

from __future__ import annotations

from typing import Final, NamedTuple

from duetime.model.instants import SECOND, Instant, Micros
from duetime.model.occurrence import Span
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.compound import Budget, Spent

MOST_WALKED: Final = 2_000
"""How many occurrences are walked over at a time where a trigger cannot count them."""
MOST_STEPS: Final = 5_000
"""How many steps such a walk takes: a few tens of milliseconds, in which nothing else runs in the process."""

_SPARE = 100
"""How many more than are wanted are walked over, rather than counted once more."""


class Passed(NamedTuple):
    """What has passed: the latest occurrences one by one, those before them as a span."""

    earlier: Span | None
    latest: list[Instant]
    whole: bool = True
    """False: there are more than could be walked over. The span has the first of them, and the rest is for later."""


def passed(trigger: Trigger, *, after: Instant, until: Instant, latest: int = 0, patience: int = 1) -> Passed:
    """Tell the occurrences in `after < occurrence <= until`, and list so many of the latest ones.

    Whoever has more patience waits for a longer walk, where it takes one.
    """
    walked = _walk(trigger, after, until, most=latest + 1)
    if len(walked) <= latest:
        return Passed(None, walked)
    count = trigger.count(after, until)
    if count is None:
        return _by_walking(trigger, walked, until, latest=latest, patience=patience)
    listed = _from_the_end(trigger, after, until, latest) if latest else []
    last = trigger.last(after, listed[0] - 1 if listed else until) or walked[0]
    return Passed(Span(walked[0], last, count - latest), listed)


def _by_walking(
    trigger: Trigger, walked: list[Instant], until: Instant, *, latest: int, patience: int
) -> Passed:
    # As many more as may be wanted: so what is in the span of a walk that was cut off is not among the latest.
    most = MOST_WALKED * patience + latest
    budget = Budget(walked[-1], MOST_STEPS * patience)
    whole = False
    try:
        while len(walked) <= most and not whole:
            following = budget.ask(trigger, walked[-1])
            if following is None or following > until:
                whole = True
            else:
                walked.append(following)
    except Spent:
        pass
    earlier = walked[: len(walked) - latest] if whole else walked[: min(len(walked), most) - latest]
    span = Span(earlier[0], earlier[-1], len(earlier))
    return Passed(span, walked[len(earlier) :] if whole else [], whole)


def _walk(trigger: Trigger, after: Instant, until: Instant, *, most: int) -> list[Instant]:
    found: list[Instant] = []
    occurrence = trigger.after(after)
    while occurrence is not None and occurrence <= until and len(found) < most:
        found.append(occurrence)
        occurrence = trigger.after(occurrence)
    return found


def _from_the_end(trigger: Trigger, after: Instant, until: Instant, number: int) -> list[Instant]:
    """Return so many of the latest occurrences, where there are more than that."""
    if number == 1 and (last := trigger.last(after, until)) is not None:
        return [last]
    reach: Micros = SECOND
    # From the end backwards: to count over a short stretch takes less than over a long one.
    while (there := trigger.count(until - reach, until) or 0) < number and after < until - reach:
        reach *= 2
    low, high = max(after, until - reach), until
    while there > 2 * number + _SPARE and high - low > 1:
        middle = (low + high) // 2
        if (fewer := trigger.count(middle, until) or 0) >= number:
            low, there = middle, fewer
        else:
            high = middle
    return _walk(trigger, low, until, most=there)[-number:]
