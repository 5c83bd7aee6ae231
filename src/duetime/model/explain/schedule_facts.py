"""What the explanation of a schedule is made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from duetime.model.audit import StoredEntry
from duetime.model.explain.asking import Question
from duetime.model.explain.facts import Facts, Situation
from duetime.model.instants import LATEST, Instant
from duetime.model.job import JobId
from duetime.model.schedule import StoredSchedule
from duetime.model.stored import StoredJob
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.text import readable


class Version(NamedTuple):
    """A trigger that a schedule had for some time."""

    trigger: Trigger | None
    """`None` when it cannot be read."""
    until: Instant
    """When another took its place."""
    entry: StoredEntry | None
    """What made another take its place; `None` for the one it has now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFacts(Situation):
    """Everything a store knows that bears on a schedule at some time."""

    name: str
    schedule: StoredSchedule | None
    """`None` when it was deleted."""
    problem: str | None = None
    """Why its row cannot be read, if it cannot; what is odd in it is blank."""
    question: Question | None = None
    """`None`: how it stands now."""
    records: Sequence[StoredJob] = ()
    """Those of the time that was asked about and after it, by occurrence: a later one may stand for that time, too."""
    before: Sequence[StoredJob] = ()
    """Records before that time, latest first; jobs only, unless nothing was asked."""
    oldest: StoredJob | None = None
    """The earliest record that is left."""
    entries: Sequence[StoredEntry] = ()
    """What was done to it, newest first."""
    jobs: Mapping[JobId, Facts] = field(default_factory=dict[JobId, Facts])
    """What is known of the jobs among the records."""

    @property
    def trigger(self) -> Trigger | None:
        """The trigger it has now, or had last."""
        return next((version.trigger for version in self.versions() if version.trigger is not None), None)

    def trigger_at(self, instant: Instant) -> Trigger | None:
        """The trigger it had at an instant."""
        found = None
        for version in self.versions():
            if version.until <= instant:
                break
            found = version.trigger
        return found

    def versions(self) -> Iterator[Version]:
        """Yield the triggers it has had, newest first."""
        spec = None if self.schedule is None else self.schedule.trigger
        until, entry = LATEST, None
        for change in self.entries:
            pair = before_and_after(change, "trigger")
            if pair is None:
                continue
            yield Version(read_trigger(spec if spec is not None else pair[1]), until, entry)
            spec, until, entry = pair[0], change.at, change
        yield Version(read_trigger(spec), until, entry)

    def value_at(self, name: str, instant: Instant) -> Any:
        """Return what a field of the schedule was at an instant; `None` when that is not known."""
        value = None if self.schedule is None else getattr(self.schedule, name)
        for entry in self.entries:
            if entry.at <= instant:
                break
            if (pair := before_and_after(entry, name)) is not None:
                value = pair[0]
        return value

    def latest(self, verb: str, *, until: Instant = LATEST) -> StoredEntry | None:
        """Return the latest entry of a verb up to an instant."""
        return next((entry for entry in self.entries if entry.verb == verb and entry.at <= until), None)


def before_and_after(entry: StoredEntry, name: str) -> tuple[Any, Any] | None:
    """Return what a field was and what it became, if an entry changed it."""
    match entry.detail.get(name):
        case [before, after]:
            return before, after
        case _:
            return None


def read_trigger(spec: object) -> Trigger | None:
    """Return the trigger of a spec; `None` when it cannot be read."""
    return readable(spec) if isinstance(spec, str) else None
