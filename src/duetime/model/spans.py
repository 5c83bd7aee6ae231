"""Records that stand for a run of skipped occurrences."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from duetime.model.instants import Instant
from duetime.model.job import JobId


class Span(NamedTuple):
    """What a record of skipped occurrences stands for."""

    id: JobId
    schedule: str
    first: Instant
    last: Instant
    occurrences: int


def without(span: Span, taken: Collection[Instant]) -> Span | None:
    """Return what a record stands for once its last occurrence and others get jobs after all; `None` for nothing.

    It ends before the first of them, and so goes on to tell why the earlier ones did not run.
    """
    inside = [occurrence for occurrence in taken if span.first <= occurrence <= span.last]
    left = span.occurrences - len(inside)
    if left <= 0 or not inside or min(inside) <= span.first:
        return None
    return span._replace(last=min(inside) - 1, occurrences=left)
