"""Functions that see every request before it is stored, and may add headers to it or refuse it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

from duetime.errors import InvalidTask
from duetime.model.headers import check_headers, headers_to_text, overlay_headers, read_headers
from duetime.model.job import JobId, NewJob
from duetime.model.secrets import mask_arguments
from duetime.scheduler.records import json_or_text, optional_datetime
from duetime.scheduler.task import Call


@dataclass(frozen=True, slots=True, repr=False)
class JobRequest:
    """A request that is about to be stored; what is not asked for is not worked out."""

    _job: NewJob

    def __repr__(self) -> str:
        """Name the job and the task."""
        return f"JobRequest(id={self.id!r}, task={self.task!r})"

    @property
    def id(self) -> JobId:
        """The id made for the job; one that stands under the same key may serve the request instead."""
        return self._job.id

    @property
    def task(self) -> str:
        """The name of its task."""
        return self._job.task

    @property
    def arguments(self) -> Any:
        """The arguments by parameter name, as JSON values; secret ones are masked."""
        return mask_arguments(json_or_text(self._job.payload), self._job.terms.secret)

    @property
    def queue(self) -> str:
        """Where it will wait."""
        return self._job.queue

    @property
    def priority(self) -> int:
        """From 0, which is served first, to 9."""
        return self._job.priority

    @property
    def at(self) -> datetime | None:
        """When it is due; `None`: now, or after a delay."""
        return optional_datetime(self._job.due_at)

    @property
    def key(self) -> str | None:
        """The key that no other live job of its task may have."""
        return None if self._job.key is None else self._job.key.value

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags it carries, those of its task included."""
        return self._job.terms.tags

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers it carries so far."""
        return read_headers(self._job.terms.headers)

    @property
    def parent(self) -> JobId | None:
        """The job that it repeats."""
        return self._job.parent

    @property
    def schedule(self) -> str | None:
        """The schedule that was triggered by hand."""
        return self._job.schedule


EnqueueHook: TypeAlias = Callable[[JobRequest], Mapping[str, str] | None]


def check_hook(function: EnqueueHook) -> None:
    """Raise `InvalidTask` unless it can be called with a request, and without an event loop."""
    try:
        fits = callable(function) and not inspect.iscoroutinefunction(function)
        inspect.signature(function).bind(None)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InvalidTask(
            f"on_enqueue takes `def function(request)`, not async; {function!r:.100} is not that"
        )


def show_to(hooks: Iterable[EnqueueHook], calls: Iterable[Call[Any]]) -> list[Call[Any]]:
    """Return the calls with the headers that functions add to them; what one raises refuses them all."""
    return [call._replace(job=_shown(hooks, call.job)) for call in calls]


def _shown(hooks: Iterable[EnqueueHook], job: NewJob) -> NewJob:
    for hook in hooks:
        added = hook(JobRequest(job))
        if added is not None and (text := headers_to_text(added)) is not None:
            headers = check_headers(overlay_headers(job.terms.headers, text))
            job = job._replace(terms=replace(job.terms, headers=headers))
    return job
