"""The occurrences that a stretch of time has passed over, told in bounded steps however long it was."""

from __future__ import annotations

from typing import Final, NamedTuple

from duetime.model.instants import SECOND, Instant, Micros
from duetime.model.occurrence import Span
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.searching import Nothing, Search

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
    through: Instant
    """Up to where this is all: not to the end if there are more than could be walked over, or a search ran out of steps."""


def passed(trigger: Trigger, *, after: Instant, until: Instant, latest: int = 0, patience: int = 1) -> Passed:
    """Return the occurrences in `after < occurrence <= until`, the last `latest` of them one by one.

    `patience` multiplies how far they are walked over, where they cannot be counted.
    """
    walked, through = _walk(trigger, after, until, most=latest + 1)
    if len(walked) <= latest:
        return Passed(None, walked, through)
    count = trigger.count(after, until)
    listed = _from_the_end(trigger, after, until, latest) if latest and count is not None else []
    # A search that ran out of steps may have missed the latest.
    whole = not latest or (len(listed) == latest and _walk(trigger, listed[-1], until, most=1) == ([], until))
    if count is None or not whole:
        return _by_walking(trigger, walked, until, latest=latest, patience=patience)
    last = trigger.last(after, listed[0] - 1 if listed else until) or walked[0]
    return Passed(Span(walked[0], last, count - latest), listed, until)


def _by_walking(
    trigger: Trigger, walked: list[Instant], until: Instant, *, latest: int, patience: int
) -> Passed:
    # As many more as may be wanted: so what is in the span of a walk that was cut off is not among the latest.
    most = MOST_WALKED * patience + latest
    search = Search(until, MOST_STEPS * patience)
    whole = False
    while len(walked) <= most and not whole:
        following = trigger.seek(walked[-1], search)
        if isinstance(following, Nothing):
            if following.through < until:
                break
            whole = True
        elif following > until:
            whole = True
        else:
            walked.append(following)
    earlier = walked[: len(walked) - latest] if whole else walked[: min(len(walked), most) - latest]
    span = Span(earlier[0], earlier[-1], len(earlier))
    if not whole:
        return Passed(span, [], span.last)
    return Passed(span, walked[len(earlier) :], until)


def _walk(trigger: Trigger, after: Instant, until: Instant, *, most: int) -> tuple[list[Instant], Instant]:
    """Return at most `most` occurrences, and up to where they are all."""
    found: list[Instant] = []
    while len(found) < most:
        occurrence = trigger.first(after, until=until)
        if isinstance(occurrence, Nothing):
            return found, min(occurrence.through, until)
        if occurrence > until:
            return found, until
        found.append(after := occurrence)
    return found, after


def _from_the_end(trigger: Trigger, after: Instant, until: Instant, number: int) -> list[Instant]:
    """Return the last `number` occurrences, where there are more than that."""
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
    return _walk(trigger, low, until, most=there)[0][-number:]
