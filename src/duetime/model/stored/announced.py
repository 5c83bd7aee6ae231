"""Tasks as workers announce them: enough to show a form and to make a job without the code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from duetime.model.job import JobTerms
from duetime.model.limits import Gate
from duetime.model.task import TaskOptions, check_on_crash, check_priority
from duetime.model.time import HOUR, Instant, Micros

ANNOUNCED_FOR: Micros = 12 * HOUR
"""After how long an announcement is made anew, so that it can be told from those of tasks that are gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAnnouncement:
    """What a worker says of a task that it can run."""

    name: str
    queue: str
    options: str
    """What else jobs of it start from, as JSON."""
    schema: str
    """The JSON Schema of its arguments, by parameter name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTask(TaskAnnouncement):
    """What was announced of a task."""

    announced_at: Instant

    def stands_for(self, task: TaskAnnouncement, *, now: Instant) -> bool:
        """Whether a task need not be announced again."""
        same = (self.queue, self.options, self.schema) == (task.queue, task.options, task.schema)
        return same and now - self.announced_at < ANNOUNCED_FOR


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncedOptions:
    """The options of an announced task, read."""

    task: TaskOptions
    retries: int = 0
    """How often it is tried again, usually."""
    doc: str | None = None


def options_to_text(options: TaskOptions, *, doc: str | None) -> str:
    """Return what is announced of the options of a task, without what it leaves open."""
    gate = options.gate
    said = {
        "priority": options.priority,
        "on_crash": options.on_crash,
        "timeout": options.timeout,
        "retries": options.retry.retries,
        "cpu": options.cpu or None,
        "terms": options.terms.to_text(),
        "gate": None if gate is None else [gate.most, gate.count, gate.period, gate.by],
        "doc": doc,
    }
    return json.dumps({name: value for name, value in said.items() if value is not None}, sort_keys=True)


def read_options(task: TaskAnnouncement) -> AnnouncedOptions:
    """Read what was announced of a task, perhaps by another version; what cannot be read is as if it were not said."""
    try:
        said: dict[str, Any] = json.loads(task.options)
        gate = said.get("gate")
        options = TaskOptions(
            queue=task.queue,
            priority=check_priority(said["priority"]),
            on_crash=check_on_crash(said["on_crash"]),
            timeout=said.get("timeout"),
            cpu=said.get("cpu", False),
            gate=None if gate is None else Gate(*gate),
            terms=JobTerms.from_text(said.get("terms")),
        )
        return AnnouncedOptions(task=options, retries=said.get("retries", 0), doc=said.get("doc"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return AnnouncedOptions(task=TaskOptions(queue=task.queue))
