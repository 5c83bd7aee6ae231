"""Lists of jobs, a page at a time: what may be asked for, and where the next page begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final, TypedDict, TypeVar

from duetime.errors import InvalidCursor, InvalidOption
from duetime.model import durations
from duetime.model.durations import Duration
from duetime.model.instants import Instant, from_datetime
from duetime.model.job import JobId
from duetime.model.names import check_text
from duetime.model.registries import Registry
from duetime.model.shown import shown
from duetime.model.states import State
from duetime.stores.base import JobFilter

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

MAX_PAGE: Final = 1_000
_DEFAULT_PAGE: Final = 50
_MARK: Final = b"jobs:"
"""What tells a cursor from other text."""


class JobQuery(TypedDict, total=False):
    """What users may write in `scheduler.jobs.list(...)`."""

    task: str | None
    state: State | str | None
    registry: Registry | str | None
    queue: str | None
    schedule: str | None
    key: str | None
    tag: str | None
    since: datetime | Duration | None
    """When they were enqueued at the earliest; a duration counts back from now."""
    limit: int
    cursor: str | None


class Page(list[T]):
    """A list that knows where the next one begins."""

    def __init__(self, items: Iterable[T] = (), *, cursor: str | None = None) -> None:
        super().__init__(items)
        self.cursor = cursor
        """What to pass for the next page; `None` after the last."""


def job_filter(query: JobQuery, *, now: Instant) -> JobFilter:
    """Check what a user asked for."""
    for name in query:
        if name not in JobQuery.__optional_keys__:
            text = f"unknown option {name!r}; options are {', '.join(sorted(JobQuery.__optional_keys__))}"
            raise InvalidOption(text)
    for what in ("task", "queue", "schedule", "key", "tag"):
        if isinstance(asked := query.get(what), str):
            check_text(asked, what=what)
    since, cursor = query.get("since"), query.get("cursor")
    return JobFilter(
        task=query.get("task"),
        state=_one_of(State, query.get("state"), what="state"),
        registry=_one_of(Registry, query.get("registry"), what="registry"),
        queue=query.get("queue"),
        schedule=query.get("schedule"),
        key=query.get("key"),
        tag=query.get("tag"),
        since=None if since is None else _instant(since, now),
        before=None if cursor is None else read_cursor(cursor),
        limit=check_limit(query.get("limit", _DEFAULT_PAGE)),
    )


def cursor_behind(job_id: JobId) -> str:
    """Return the cursor of the page that begins behind a job."""
    return base64.urlsafe_b64encode(_MARK + job_id.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> JobId:
    """Return the job that a page begins behind, or raise `InvalidCursor`."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        if text.startswith(_MARK):
            return check_text(text.removeprefix(_MARK).decode(), what="cursor")
    except (TypeError, ValueError, binascii.Error):
        pass
    message = f"{shown(cursor)} is no cursor; pass the `cursor` of the page before as it is"
    raise InvalidCursor(message)


def check_limit(limit: int, *, what: str = "limit") -> int:
    """Return the number, or raise `InvalidOption`."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        text = f"{what} must be a whole number from 1 to {MAX_PAGE}, not {shown(limit)}"
        raise InvalidOption(text)
    return limit


def _instant(since: datetime | Duration, now: Instant) -> Instant:
    if isinstance(since, datetime):
        return from_datetime(since, what="since")
    return max(0, now - durations.parse(since, what="since"))


def _one_of(kind: type[E], value: str | None, *, what: str) -> E | None:
    try:
        return None if value is None else kind(value)
    except ValueError:
        text = f"{what} must be one of {', '.join(kind)}, not {shown(value)}"
        raise InvalidOption(text) from None
