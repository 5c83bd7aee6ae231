"""Making up for occurrences of the past: which can be made up for, and the records that give way to their jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from duetime.errors import InvalidTime
from duetime.model.job import JobId, NewJob
from duetime.model.schedule.occurrences import (
    OccurrenceSpan,
    passed_occurrences,
    skipped_record,
    walk_occurrences,
)
from duetime.model.schedule.record import StoredSchedule
from duetime.model.states import State
from duetime.model.stored import StoredJob
from duetime.model.time import Instant, to_datetime
from duetime.model.triggers.base import Trigger

MOST_BACKFILLED: Final = 10_000


def to_backfill(
    schedule: StoredSchedule, trigger: Trigger, *, start: Instant, end: Instant, now: Instant
) -> list[Instant]:
    """Return the occurrences from `start` to `end`, both included, that the schedule itself will not make any more."""
    if end > now:
        raise InvalidTime(f"end {_shown(end)} lies in the future; the schedule itself makes what is to come")
    if start > end:
        raise InvalidTime(f"start {_shown(start)} lies after end {_shown(end)}")
    until, shorter = min(end, schedule.fired_through), "ask for a shorter time, several times if need be"
    found, through = walk_occurrences(trigger, start - 1, until, most=MOST_BACKFILLED + 1)
    if len(found) > MOST_BACKFILLED:
        count = trigger.count(start - 1, until)
        raise InvalidTime(
            f"{schedule.name} has {f'more than {MOST_BACKFILLED:,}' if count is None else f'{count:,}'} occurrences in "
            f"this time, and at most {MOST_BACKFILLED:,} are made up for in one go; {shorter}"
        )
    if through < until:
        raise InvalidTime(
            f"which occurrences {schedule.name} has after {_shown(through)} takes too long to tell; {shorter}"
        )
    return found


def _shown(instant: Instant) -> str:
    return to_datetime(instant).isoformat(sep=" ")


class SpanCut(NamedTuple):
    """What becomes of a record whose occurrences get jobs, if it is as it was read."""

    id: JobId
    was: OccurrenceSpan
    left: OccurrenceSpan | None
    """What it goes on to stand for; `None`: for nothing."""
    others: tuple[NewJob, ...] = ()
    """Records of the rest, where the jobs come in between."""


def gives_way(record: StoredJob) -> bool:
    """Whether nothing has run for what a record stands for: it was skipped, or cancelled before it began."""
    if record.state is State.SKIPPED:
        return True
    unstarted = record.started_at is None and not record.failures and not record.crashes
    return record.state is State.CANCELLED and unstarted


def span_cuts(
    records: Iterable[StoredJob], wanted: Iterable[Instant], schedule: StoredSchedule, trigger: Trigger
) -> list[SpanCut]:
    """Return how the records of a schedule give way to jobs for these occurrences; where one has run, it stays."""
    found = list(records)
    taken = sorted({*wanted} - {record.occurrence for record in found if not gives_way(record)})
    made: list[SpanCut] = []
    for record in found:
        span = record_span(record)
        if span is None or not (inside := [at for at in taken if span.first <= at <= span.last]):
            continue
        left = span_without(span, inside, trigger)
        others = tuple(skipped_record(schedule, one, reason=record.reason or "") for one in left[:-1])
        made.append(SpanCut(record.id, span, left[-1] if left else None, others))
    return made


def record_span(record: StoredJob) -> OccurrenceSpan | None:
    """Return what a record that gives way stands for; `None` for any other, and for one that has given way."""
    if record.occurrence is None or not gives_way(record):
        return None
    first = record.occurrence if record.span_first is None else record.span_first
    return OccurrenceSpan(first, record.occurrence, record.span_count)


def span_without(span: OccurrenceSpan, taken: Sequence[Instant], trigger: Trigger) -> list[OccurrenceSpan]:
    """Return what is left of a span when some occurrences in it get jobs, in order.

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
