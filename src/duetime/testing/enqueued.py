"""Asserts what was enqueued, and shows what was when that is something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias, cast

import msgspec

from duetime.errors import InvalidArguments
from duetime.model.secrets import MASK
from duetime.model.text import counted
from duetime.runtime.codec.json_values import encode_json
from duetime.runtime.running.handler import Handler
from duetime.scheduler.job_class import Job
from duetime.scheduler.records import JobRecord
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.task import Task

_PAGE = 1_000
_MOST_SHOWN = 10

AnyTask: TypeAlias = Task[..., Any] | type[Job]


async def assert_enqueued(
    scheduler: Scheduler,
    task: AnyTask,
    /,
    *args: object,
    queue: str | None = None,
    key: str | None = None,
    priority: int | None = None,
    tags: Sequence[str] = (),
    due_at: datetime | None = None,
    times: int | None = None,
    **kwargs: object,
) -> list[JobRecord]:
    """Return the jobs of a task with these arguments, oldest first; fails when there is none, or not `times`.

    Whatever is left out may be anything, arguments too. Jobs count in any state, also those that have run.
    """
    rest = {"queue": queue, "key": key, "priority": priority, "due_at": due_at}
    wanted = _wanted(task, args, kwargs, rest=rest, tags=tags)
    jobs = await _read(scheduler, wanted)
    found = [job for job in jobs if wanted.fits(job)]
    if len(found) == times or (times is None and found):
        return found
    count = f"enqueued {counted(len(found), 'time')}, not {times}" if found else "not enqueued"
    raise AssertionError(f"{wanted} was {count}; {_shown(jobs, await _others(scheduler, wanted))}")


async def refute_enqueued(
    scheduler: Scheduler,
    task: AnyTask,
    /,
    *args: object,
    queue: str | None = None,
    key: str | None = None,
    priority: int | None = None,
    tags: Sequence[str] = (),
    due_at: datetime | None = None,
    **kwargs: object,
) -> None:
    """Fail when a task was enqueued with these arguments; whatever is left out may be anything."""
    rest = {"queue": queue, "key": key, "priority": priority, "due_at": due_at}
    wanted = _wanted(task, args, kwargs, rest=rest, tags=tags)
    jobs = await _read(scheduler, wanted)
    if any(wanted.fits(job) for job in jobs):
        raise AssertionError(f"{wanted} was enqueued; {_shown(jobs, await _others(scheduler, wanted))}")


async def _read(scheduler: Scheduler, wanted: _Wanted) -> list[JobRecord]:
    """Return all jobs of the task, oldest first."""
    found: list[JobRecord] = []
    async with scheduler:
        page = await scheduler.jobs.list(task=wanted.handler.name, limit=_PAGE)
        found += page
        while page.cursor is not None:
            page = await scheduler.jobs.list(task=wanted.handler.name, limit=_PAGE, cursor=page.cursor)
            found += page
    return found[::-1]


async def _others(scheduler: Scheduler, wanted: _Wanted) -> Counter[str]:
    """Count the latest jobs of other tasks."""
    async with scheduler:
        latest = await scheduler.jobs.list(limit=_PAGE)
    return Counter(job.task for job in latest if job.task != wanted.handler.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A job to look for."""

    handler: Handler
    arguments: Mapping[str, object]
    """By parameter name, as JSON values."""
    defaults: Mapping[str, object]
    rest: Mapping[str, object]
    tags: frozenset[str]

    def fits(self, job: JobRecord) -> bool:
        return (
            self._fits_arguments(_arguments(job))
            and self.tags <= {*job.tags}
            and all(getattr(job, name) == value for name, value in self.rest.items())
        )

    def _fits_arguments(self, stored: Mapping[str, object]) -> bool:
        found = {**self.defaults, **stored}
        return all(name in found and found[name] in (value, MASK) for name, value in self.arguments.items())

    def __str__(self) -> str:
        rest = {**self.rest, **({"tags": sorted(self.tags)} if self.tags else {})}
        return ", ".join(
            [f"{self.handler.name}({_pairs(self.arguments)})", *([_pairs(rest)] if rest else [])]
        )


def _wanted(
    task: AnyTask,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    *,
    rest: Mapping[str, object],
    tags: Sequence[str],
) -> _Wanted:
    handler = (task if isinstance(task, Task) else task.task).handler
    signature = handler.signature
    parameters = signature.parameters.values()
    try:
        bound = signature.bind_partial(*args, **kwargs).arguments
        arguments = {name: _as_json(value) for name, value in bound.items()}
    except TypeError as error:
        text = f"no job of {handler.name}{signature} can have these arguments: {error}"
        raise InvalidArguments(text) from None
    return _Wanted(
        handler=handler,
        arguments=arguments,
        defaults={
            p.name: _as_json(p.default) for p in parameters if p.name in bound and p.default is not p.empty
        },
        rest={name: value for name, value in rest.items() if value is not None},
        tags=frozenset(tags),
    )


def _shown(own: Sequence[JobRecord], others: Counter[str]) -> str:
    """Tell what was enqueued: of the task in full, of others how many."""
    lines = [f"of this task there {'is 1 job' if len(own) == 1 else f'are {len(own)} jobs'}"]
    lines += [f"  {_line(job)}" for job in own[-_MOST_SHOWN:]]
    if len(own) > _MOST_SHOWN:
        lines.insert(1, f"  … {len(own) - _MOST_SHOWN} older ones, and")
    if others:
        lines.append("of others: " + ", ".join(f"{name} ({count})" for name, count in sorted(others.items())))
    return "\n".join(lines)


def _line(job: JobRecord) -> str:
    said: dict[str, object] = {"queue": job.queue, "priority": job.priority}
    said |= {"key": job.key} if job.key is not None else {}
    said |= {"tags": list(job.tags)} if job.tags else {}
    return f"({_pairs(_arguments(job))}), {_pairs(said)}, due {job.due_at.isoformat()}, {job.state}"


def _arguments(job: JobRecord) -> dict[str, object]:
    return cast("dict[str, object]", job.arguments) if isinstance(job.arguments, dict) else {}


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _as_json(value: object) -> object:
    return msgspec.json.decode(encode_json(value))
