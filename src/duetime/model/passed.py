"""The occurrences that a stretch of time has passed over, told in bounded steps however long it was."""

from __future__ import annotations

from typing import Final, NamedTuple

from duetime.model.instants import SECOND, Instant, Micros
from duetime.model.occurrence import Span
from duetime.model.triggers import Trigger

MOST_WALKED: Final = 10_000
"""How many occurrences are walked over at a time where a trigger cannot count them."""


class Passed(NamedTuple):
    """What has passed: the latest occurrences one by one, those before them as a span."""

    earlier: Span | None
    latest: list[Instant]
    whole: bool = True
    """False: there are more than could be walked over. The span has the first of them, and the rest is for later."""


def passed(trigger: Trigger, *, after: Instant, until: Instant, latest: int = 0) -> Passed:
    """Tell the occurrences in `after < occurrence <= until`, and list so many of the latest ones."""
    walked = _walk(trigger, after, until, most=latest + 1)
    if len(walked) <= latest:
        return Passed(None, walked)
    count = trigger.count(after, until)
    if count is None:
        return _by_walking(trigger, walked, until, latest)
    cut = _from_the_end(trigger, after, until, latest) if latest else until + 1
    last = trigger.last(after, cut - 1) or walked[0]
    return Passed(Span(walked[0], last, count - latest), _walk(trigger, cut - 1, until, most=latest))


def _by_walking(trigger: Trigger, walked: list[Instant], until: Instant, latest: int) -> Passed:
    # As many more as may be wanted: so what is in the span of a walk that was cut off is not among the latest.
    most = MOST_WALKED + latest
    walked += _walk(trigger, walked[-1], until, most=most + 1 - len(walked))
    whole = len(walked) <= most
    earlier = walked[: len(walked) - latest] if whole else walked[:MOST_WALKED]
    span = Span(earlier[0], earlier[-1], len(earlier))
    return Passed(span, walked[len(earlier) :] if whole else [], whole)


def _walk(trigger: Trigger, after: Instant, until: Instant, *, most: int) -> list[Instant]:
    found: list[Instant] = []
    occurrence = trigger.after(after)
    while occurrence is not None and occurrence <= until and len(found) < most:
        found.append(occurrence)
        occurrence = trigger.after(occurrence)
    return found


def _from_the_end(trigger: Trigger, after: Instant, until: Instant, number: int) -> Instant:
    """Return the occurrence that so many, itself included, are left from, where there are more than that."""
    if number == 1 and (last := trigger.last(after, until)) is not None:
        return last
    reach: Micros = SECOND
    # From the end backwards: to count over a short stretch takes less than over a long one.
    while after < until - reach and (trigger.count(until - reach, until) or 0) < number:
        reach *= 2
    low, high = max(after, until - reach), until
    while high - low > 1:
        middle = (low + high) // 2
        if (trigger.count(middle, until) or 0) >= number:
            low = middle
        else:
            high = middle
    return high
