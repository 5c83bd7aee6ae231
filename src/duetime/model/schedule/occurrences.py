"""Occurrences of a schedule: which have passed, which are to come, what is made of them, and which are made up for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

from duetime.errors import InvalidTime
from duetime.model.ids import new_job_id
from duetime.model.job import JobId, JobTerms, NewJob
from duetime.model.limits import schedule_gate
from duetime.model.schedule.record import StoredSchedule, standstill
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import Instant, from_datetime, in_words
from duetime.model.triggers.base import NEVER, NoOccurrence, SearchBudget, Trigger
from duetime.model.triggers.combined import CombinedTrigger
from duetime.model.triggers.preview import Upcoming, preview

MOST_IN_A_SPAN: Final = 2**31 - 1
"""The largest number that every database can store."""


@dataclass(frozen=True, slots=True)
class OccurrenceSpan:
    """Some occurrences in a row."""

    first: Instant
    last: Instant
    count: int


def scheduled_job(
    schedule: StoredSchedule, occurrence: Instant | None, *, due_at: Instant | None, in_turn: bool
) -> NewJob:
    """Return a job of a schedule; one that runs in turn starts when no other job of it runs anywhere."""
    terms = JobTerms.from_text(schedule.terms)
    if in_turn and terms.gate is None:
        terms = replace(terms, gate=schedule_gate(schedule.name))
    return _job_of(schedule, occurrence, due_at=due_at)._replace(
        on_crash=schedule.on_crash, retries=schedule.retries, timeout=schedule.timeout, terms=terms
    )


def backfill_job(schedule: StoredSchedule, occurrence: Instant, *, in_turn: bool) -> NewJob:
    """Return a job for an occurrence that the schedule has passed; the next occurrence does not end it."""
    return scheduled_job(schedule, occurrence, due_at=None, in_turn=in_turn)._replace(span_first=occurrence)


def skipped_record(schedule: StoredSchedule, span: OccurrenceSpan, *, reason: str) -> NewJob:
    """Return the one record of occurrences that do not run."""
    return _job_of(schedule, span.last, due_at=span.last)._replace(
        state=State.SKIPPED, reason=reason, span_first=span.first, span_count=min(span.count, MOST_IN_A_SPAN)
    )


def _job_of(schedule: StoredSchedule, occurrence: Instant | None, *, due_at: Instant | None) -> NewJob:
    return NewJob(
        id=new_job_id(),
        task=schedule.task,
        payload=schedule.payload,
        due_at=due_at,
        queue=schedule.queue,
        priority=schedule.priority,
        schedule=schedule.name,
        occurrence=occurrence,
    )


def jobs_left(trigger: Trigger, *, made: int) -> int | None:
    """How many jobs a schedule may still make after `made` of them; `None` for any number."""
    return None if trigger.times is None else max(0, trigger.times - made)


def first_occurrence_after(trigger: Trigger, instant: Instant, *, made: int) -> Instant | NoOccurrence:
    """Return the next occurrence, or up to when there is none; a schedule that made all its jobs has none at all."""
    return NEVER if jobs_left(trigger, made=made) == 0 else trigger.first(instant)


def next_look_after(trigger: Trigger, instant: Instant, *, made: int) -> Instant | None:
    """Return the next occurrence, or where a search without result goes on; `None` only if it is proved that none is left."""
    found = first_occurrence_after(trigger, instant, made=made)
    if isinstance(found, NoOccurrence):
        return None if found.proved else found.through
    return found


def searched_until(trigger: Trigger, next_at: Instant | None) -> Instant | None:
    """Return up to where a search has found nothing, if that is what a next time stands for; else `None`."""
    found = next_at is None or not isinstance(trigger, CombinedTrigger) or trigger.comes_at(next_at)
    return None if found else next_at


MOST_WALKED: Final = 2_000
"""How many occurrences are walked over at a time where a trigger cannot count them."""
MOST_STEPS: Final = 5_000
"""How many steps such a walk takes at most: a few tens of milliseconds, in which nothing else runs in the process."""


class PassedOccurrences(NamedTuple):
    """What has passed: the latest occurrences one by one, those before them as a span."""

    earlier: OccurrenceSpan | None
    latest: list[Instant]
    through: Instant
    """Up to where these are all; before the end if there are too many to walk over, or a search ran out of steps."""


def passed_occurrences(
    trigger: Trigger, *, after: Instant, until: Instant, latest: int = 0, factor: int = 1
) -> PassedOccurrences:
    """Return the occurrences in `after < occurrence <= until`, the last `latest` one by one; `factor` lengthens a walk."""
    walked, through = walk_occurrences(trigger, after, until, most=latest + 1)
    if len(walked) <= latest:
        return PassedOccurrences(None, walked, through)
    count = trigger.count(after, until)
    listed = _from_the_end(trigger, after, until, latest) if latest and count is not None else []
    # A search that ran out of steps may have missed the latest.
    whole = not latest or (
        len(listed) == latest and walk_occurrences(trigger, listed[-1], until, most=1) == ([], until)
    )
    if count is None or not whole:
        return _by_walking(trigger, walked, until, latest=latest, factor=factor)
    last = trigger.last(after, listed[0] - 1 if listed else until) or walked[0]
    return PassedOccurrences(OccurrenceSpan(walked[0], last, count - latest), listed, until)


def _by_walking(
    trigger: Trigger, walked: list[Instant], until: Instant, *, latest: int, factor: int
) -> PassedOccurrences:
    # The span of a walk that was cut off leaves out the last ones, because they may be among the latest.
    most = MOST_WALKED * factor + latest
    search = SearchBudget(until, MOST_STEPS * factor)
    following: Instant | NoOccurrence = until
    while len(walked) <= most:
        following = trigger.seek(walked[-1], search)
        if isinstance(following, NoOccurrence) or following > until:
            break
        walked.append(following)
    whole = following.through >= until if isinstance(following, NoOccurrence) else following > until
    earlier = walked[: len(walked) - latest] if whole else walked[: min(len(walked), most) - latest]
    span = OccurrenceSpan(earlier[0], earlier[-1], len(earlier))
    if not whole:
        return PassedOccurrences(span, [], span.last)
    return PassedOccurrences(span, walked[len(earlier) :], until)


def walk_occurrences(
    trigger: Trigger, after: Instant, until: Instant, *, most: int
) -> tuple[list[Instant], Instant]:
    """Return at most `most` occurrences, and up to where they are all."""
    found: list[Instant] = []
    while len(found) < most:
        occurrence = trigger.first(after, until=until)
        if isinstance(occurrence, NoOccurrence):
            return found, min(occurrence.through, until)
        if occurrence > until:
            return found, until
        found.append(after := occurrence)
    return found, after


def _from_the_end(trigger: Trigger, after: Instant, until: Instant, number: int) -> list[Instant]:
    """Return the last `number` occurrences, where there are more than that."""
    if number == 1 and (last := trigger.last(after, until)) is not None:
        return [last]
    low, high = after, until
    # Counting gets cheaper as the stretch before the end gets shorter.
    while high - low > 1:
        middle = (low + high) // 2
        if (trigger.count(middle, until) or 0) >= number:
            low = middle
        else:
            high = middle
    return walk_occurrences(trigger, low, until, most=number + 1)[0][-number:]


def upcoming_occurrences(
    schedule: StoredSchedule, trigger: Trigger, *, after: Instant, count: int, skipped: Mapping[Instant, str]
) -> list[Upcoming]:
    """Return the occurrences after an instant that may still get jobs; `skipped` has the reason for those that will not run."""
    found = [(from_datetime(one.at), one) for one in preview(trigger, after=after, count=count)]
    if trigger.times is not None:
        passed = trigger.count(schedule.fired_through, after) if after > schedule.fired_through else 0
        planted = sum(at <= schedule.fired_through for at, _ in found)
        found = found[: planted + (jobs_left(trigger, made=schedule.made + (passed or 0)) or 0)]
    notes = [filter(None, (one.note, skipped.get(at), _stands(schedule, at))) for at, one in found]
    return [replace(one, note="; ".join(said) or None) for (_, one), said in zip(found, notes, strict=True)]


def _stands(schedule: StoredSchedule, occurrence: Instant) -> str | None:
    """Say why a schedule does not fire at a time, if it does not."""
    until = schedule.paused_until
    if standstill(schedule) != "paused" or until is None:
        return standstill(schedule)
    return None if occurrence >= until else f"paused until {in_words(until)}"


MOST_BACKFILLED: Final = 10_000


def to_backfill(
    schedule: StoredSchedule, trigger: Trigger, *, start: Instant, end: Instant, now: Instant
) -> list[Instant]:
    """Return the occurrences from `start` to `end`, both included, that the schedule itself will not make any more."""
    if end > now:
        raise InvalidTime(
            f"end {in_words(end)} lies in the future; the schedule itself makes what is to come"
        )
    if start > end:
        raise InvalidTime(f"start {in_words(start)} lies after end {in_words(end)}")
    until, shorter = min(end, schedule.fired_through), "ask for a shorter time, several times if need be"
    found, through = walk_occurrences(trigger, start - 1, until, most=MOST_BACKFILLED + 1)
    if len(found) > MOST_BACKFILLED:
        raise InvalidTime(f"{schedule.name} has more than {MOST_BACKFILLED:,} occurrences then; {shorter}")
    if through < until:
        raise InvalidTime(f"what comes after {in_words(through)} takes too long to tell; {shorter}")
    return found


class SpanCut(NamedTuple):
    """What becomes of a record whose occurrences get jobs, if it has not changed since it was read."""

    id: JobId
    was: OccurrenceSpan
    left: OccurrenceSpan | None
    """What it stands for from now on; `None` for nothing."""
    others: tuple[NewJob, ...] = ()
    """Records of the rest, if the jobs split it."""


def gives_way(record: StoredJob) -> bool:
    """Whether nothing has run for a record: it was skipped, or cancelled before it started."""
    if record.state is State.SKIPPED:
        return True
    unstarted = record.started_at is None and not record.failures and not record.crashes
    return record.state is State.CANCELLED and unstarted


def span_cuts(
    records: Iterable[StoredJob], wanted: Iterable[Instant], schedule: StoredSchedule, trigger: Trigger
) -> list[SpanCut]:
    """Return how the records of a schedule give way to jobs for these occurrences; where one has run, it stays.

    What is left of a span does not end where another record stands.
    """
    found = list(records)
    taken = {*wanted} - {record.occurrence for record in found if not gives_way(record)}
    made: list[SpanCut] = []
    for record in found:
        span = record_span(record)
        if span is None or not any(span.first <= at <= span.last for at in taken):
            continue
        others = {other.occurrence for other in found if other is not record and other.occurrence is not None}
        inside = sorted(at for at in taken | others if span.first <= at <= span.last)
        left = span_without(span, inside, trigger)
        pieces = tuple(skipped_record(schedule, one, reason=record.reason or "") for one in left[:-1])
        made.append(SpanCut(record.id, span, left[-1] if left else None, pieces))
    return made


def record_span(record: StoredJob) -> OccurrenceSpan | None:
    """Return what a record that gives way stands for; `None` for any other, and for one that has given way."""
    if record.occurrence is None or not gives_way(record):
        return None
    first = record.occurrence if record.span_first is None else record.span_first
    return OccurrenceSpan(first, record.occurrence, record.span_count)


def span_without(span: OccurrenceSpan, taken: Sequence[Instant], trigger: Trigger) -> list[OccurrenceSpan]:
    """Return what is left of a span, in order, when some of its occurrences get jobs.

    Its ends and its number are what was written, whatever the trigger says now; in between, the trigger tells.
    """
    gaps = [(span.first - 1, taken[0]), *pairwise(taken), (taken[-1], span.last + 1)]
    left = [_between(trigger, low, high, known=(span.first, span.last)) for low, high in gaps]
    pieces = [piece for piece in left if piece is not None]
    if pieces:
        rest = span.count - len(taken) - sum(piece.count for piece in pieces[:-1])
        pieces[-1] = replace(pieces[-1], count=max(1, rest))
    return pieces


def _between(
    trigger: Trigger, low: Instant, high: Instant, *, known: Collection[Instant]
) -> OccurrenceSpan | None:
    """Return the occurrences between two instants, both excluded, among them those that are known."""
    found = passed_occurrences(trigger, after=low, until=high - 1).earlier
    for occurrence in known:
        if low < occurrence < high:
            found = found or OccurrenceSpan(occurrence, occurrence, 1)
            found = replace(found, first=min(found.first, occurrence), last=max(found.last, occurrence))
    return found
