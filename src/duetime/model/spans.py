"""Records that give way to jobs which are made after all, each occurrence accounted for once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from duetime.model.instants import Instant
from duetime.model.job import JobId, NewJob
from duetime.model.occurrence import Span, skipped
from duetime.model.passed import passed
from duetime.model.schedule import StoredSchedule
from duetime.model.states import State
from duetime.model.stored import StoredJob
from duetime.model.triggers.base import Trigger


class Cut(NamedTuple):
    """What becomes of a record whose occurrences get jobs, if it is as it was read."""

    id: JobId
    was: Span
    left: Span | None
    """What it goes on to stand for; `None`: for nothing."""
    others: tuple[NewJob, ...] = ()
    """Records of the rest, where the jobs come in between."""


def gives_way(record: StoredJob) -> bool:
    """Whether nothing has run for what a record stands for: it was skipped, or cancelled before it began."""
    if record.state is State.SKIPPED:
        return True
    unstarted = record.started_at is None and not record.failures and not record.crashes
    return record.state is State.CANCELLED and unstarted


def cuts(
    records: Iterable[StoredJob], wanted: Iterable[Instant], schedule: StoredSchedule, trigger: Trigger
) -> list[Cut]:
    """Return how the records of a schedule give way to jobs for these occurrences; where one has run, it stays."""
    found = list(records)
    taken = sorted({*wanted} - {record.occurrence for record in found if not gives_way(record)})
    made: list[Cut] = []
    for record in found:
        span = span_of(record)
        if span is None or not (inside := [at for at in taken if span.first <= at <= span.last]):
            continue
        left = without(span, inside, trigger)
        others = tuple(skipped(schedule, one, reason=record.reason or "") for one in left[:-1])
        made.append(Cut(record.id, span, left[-1] if left else None, others))
    return made


def span_of(record: StoredJob) -> Span | None:
    """Return what a record that gives way stands for; `None` for any other, and for one that has given way."""
    if record.occurrence is None or not gives_way(record):
        return None
    first = record.occurrence if record.span_first is None else record.span_first
    return Span(first, record.occurrence, record.span_count)


def without(span: Span, taken: Sequence[Instant], trigger: Trigger) -> list[Span]:
    """Return what is left of a span around occurrences in it that get jobs, in order.

    Its ends and its number are what was written, whatever the trigger says now; in between, the trigger tells.
    """
    gaps = [(span.first - 1, taken[0]), *pairwise(taken), (taken[-1], span.last + 1)]
    left = [_between(trigger, low, high, known=(span.first, span.last)) for low, high in gaps]
    pieces = [piece for piece in left if piece is not None]
    if pieces:
        rest = span.count - len(taken) - sum(piece.count for piece in pieces[:-1])
        pieces[-1] = replace(pieces[-1], count=max(1, rest))
    return pieces


def _between(trigger: Trigger, low: Instant, high: Instant, *, known: Collection[Instant]) -> Span | None:
    """Return the occurrences between two instants, both excluded, among them those that are known."""
    found = passed(trigger, after=low, until=high - 1).earlier
    for occurrence in known:
        if low < occurrence < high:
            found = found or Span(occurrence, occurrence, 1)
            found = replace(found, first=min(found.first, occurrence), last=max(found.last, occurrence))
    return found
