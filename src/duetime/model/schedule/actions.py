"""What is written when a schedule is declared, put, edited, paused, resumed, deleted or parked, or skips its next run."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from duetime.errors import InvalidTime, NothingToSkip
from duetime.model.job import JobTerms, NewJob
from duetime.model.schedule.occurrences import (
    OccurrenceSpan,
    jobs_left,
    next_look_after,
    passed_occurrences,
    searched_until,
    skipped_record,
)
from duetime.model.schedule.record import PAUSED, ScheduleUpdate, StoredSchedule, standstill
from duetime.model.secrets import mask_payload
from duetime.model.stored.audit import ITSELF, AuditEntry
from duetime.model.stored.jobs import StoredWorker
from duetime.model.time import SECOND, Instant, Micros, in_words
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.specs import same_rule, trigger_from_text, trigger_if_readable, trigger_to_text

SCHEDULE_FIELDS: Final = (
    "task", "payload", "queue", "priority", "on_crash", "retries", "timeout", "terms", "overlap", "overlap_limit",
    "misfire", "misfire_window", "misfire_limit", "pause_after",
)  # fmt: skip
"""What a schedule says apart from its trigger."""

CHANGED: Final = "schedule changed"
EDITED: Final = "edited"
PARKED_REASON: Final = "no code declares it any more"
UNDECLARED_GRACE: Final[Micros] = 600 * SECOND
"""How long a schedule stays active without a declaration: longer than a deployment or a restart takes."""

_SEARCH_FACTOR = 5
"""How much longer this search may be than others: it is made once, and others are repeated soon."""


def put(
    before: StoredSchedule | None, new: StoredSchedule, trigger: Trigger, *, who: str, now: Instant
) -> ScheduleUpdate | None:
    """Return what to write so that a schedule is as it was put; `None` when it is so already.

    What code declares stays the code's own, and what it has declared stays known: so the change holds until the code
    changes in the same place. One that is parked is taken over, since no code declares it any more.
    """
    if before is None:
        return ScheduleUpdate(before=None, after=new, entry=AuditEntry(verb="put", target=new.name, who=who))
    after = replace(before, **{name: getattr(new, name) for name in SCHEDULE_FIELDS})
    if before.parked_at is not None:
        after = replace(after, owner="user", declared="", parked_at=None)
    return revise(before, after, None if _has(before, trigger) else new, verb="put", who=who, now=now)


def edit(
    before: StoredSchedule, after: StoredSchedule, trigger: Trigger | None, *, who: str, now: Instant
) -> ScheduleUpdate | None:
    """Return what to write so that a schedule is as in `after`, with this trigger if one is given."""
    times = None
    if trigger is not None and not _has(before, trigger):
        rule = trigger.anchored(now)
        times = replace(before, trigger=trigger_to_text(rule), next_at=next_look_after(rule, now, made=0))
    return revise(before, after, times, verb="edit", who=who, now=now)


def revise(
    before: StoredSchedule,
    after: StoredSchedule,
    times: StoredSchedule | None,
    *,
    verb: str,
    who: str,
    now: Instant,
) -> ScheduleUpdate | None:
    """Return what to write so that a schedule is as in `after`, with the trigger of `times` if it is another one.

    Its times stay unless the trigger changes or it was parked for long: then it goes on from now, and one record tells
    what has not run. A new trigger counts its jobs anew. `None` when nothing differs.
    """
    missed: tuple[NewJob, ...] = ()
    if times is None and before.parked_at is not None and now - before.parked_at <= after.misfire_window:
        # As after an outage: what fell due meanwhile is late, and the misfire policy decides about it.
        after = replace(after, next_at=_next(after, after.fired_through))
    elif times is not None or after.parked_at != before.parked_at:
        missed = _missed(before, reason=standstill(before) or EDITED, now=now)
        after = _from_now_on(after, now=now) if times is None else _timed(after, times, now=now)
    names = ("trigger", *SCHEDULE_FIELDS, "owner", "parked_at")
    pairs = {name: [getattr(before, name), getattr(after, name)] for name in names}
    detail = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if "payload" in detail:
        detail["payload"] = [mask_payload(one.payload, _secret(one)) for one in (before, after)]
    if not detail and times is None:
        return None
    return ScheduleUpdate(
        before=before,
        after=replace(after, streak_from=now),
        entry=AuditEntry(verb=verb, target=before.name, who=who, detail=detail),
        jobs=missed,
        withdraw=CHANGED,
        # The new trigger may have occurrences before the jobs planted for the old one; none of them is lost.
        again=times is None or after.fired_through > now,
        # Otherwise a change a moment before an occurrence would drop it.
        held=False,
    )


def _secret(schedule: StoredSchedule) -> str | None:
    return JobTerms.from_text(schedule.terms).secret


def pause(
    before: StoredSchedule, *, reason: str | None, until: Instant | None, who: str, now: Instant
) -> ScheduleUpdate:
    """Return what to write so that a schedule does not fire; its planted jobs are withdrawn."""
    if until is not None and until <= now:
        raise InvalidTime(f"until {in_words(until)} lies in the past; leave it out to pause without end")
    since = before.paused_at or now
    after = replace(before, paused_at=since, paused_reason=reason, paused_by=who, paused_until=until)
    detail = {"reason": reason, "until": until}
    entry = AuditEntry(verb="pause", target=before.name, who=who, detail=detail)
    return ScheduleUpdate(before=before, after=after, entry=entry, withdraw="schedule paused")


def resume(before: StoredSchedule, *, who: str, now: Instant) -> ScheduleUpdate | None:
    """Return what to write so that a paused schedule goes on from now, with one record of what has not run; else `None`."""
    if before.paused_at is None:
        return None
    after = replace(
        before, paused_at=None, paused_reason=None, paused_by=None, paused_until=None, streak_from=now
    )
    entry = AuditEntry(verb="resume", target=before.name, who=who)
    missed: tuple[NewJob, ...] = ()
    if before.parked_at is None:
        after, missed = _from_now_on(after, now=now), _missed(before, reason=PAUSED, now=now)
    return ScheduleUpdate(before=before, after=after, entry=entry, jobs=missed)


def skip(before: StoredSchedule, *, planted: Instant | None, who: str) -> tuple[Instant, ScheduleUpdate]:
    """Return the next occurrence and what to write so that it does not run; if it is planted, it is withdrawn."""
    upcoming = before.next_at if planted is None else planted
    why = standstill(before) or (None if upcoming is not None else "over")
    if why is not None or upcoming is None:
        raise NothingToSkip(f"schedule {before.name!r} is {why}, so nothing of it is about to run")
    trigger = trigger_from_text(before.trigger)
    if planted is None and searched_until(trigger, upcoming) is not None:
        raise NothingToSkip(f"no occurrence of schedule {before.name!r} is found up to {in_words(upcoming)}")
    fired_through = max(before.fired_through, upcoming)
    next_at = next_look_after(trigger, fired_through, made=0)
    after = replace(before, fired_through=fired_through, next_at=next_at)
    reason = f"skipped by {who}"
    change = ScheduleUpdate(
        before=before,
        after=after,
        entry=AuditEntry(verb="skip", target=before.name, who=who, detail={"occurrence": upcoming}),
        jobs=(skipped_record(before, OccurrenceSpan(upcoming, upcoming, 1), reason=reason),),
        withdraw=None if planted is None else reason,
        again=False,
        only=planted,
    )
    return upcoming, change


def deletion(before: StoredSchedule, *, who: str) -> AuditEntry:
    """Return what is kept of a deleted schedule: enough to explain later when it would have run."""
    detail = {"trigger": [before.trigger, None], "task": [before.task, None]}
    return AuditEntry(verb="delete", target=before.name, who=who, detail=detail)


def _has(schedule: StoredSchedule, trigger: Trigger | None) -> bool:
    """Whether a schedule has this trigger; one that cannot be read here is another."""
    stored = trigger_if_readable(schedule.trigger)
    return stored is not None and trigger is not None and same_rule(stored, trigger)


def _timed(schedule: StoredSchedule, times: StoredSchedule, *, now: Instant) -> StoredSchedule:
    """Return a schedule that goes on from now by the trigger of `times`; one that is parked waits for its code."""
    going = replace(schedule, trigger=times.trigger, made=0, fired_through=now, next_at=times.next_at)
    if times.next_at is not None and times.next_at == schedule.fired_through:
        # It was planted or skipped already, so it is not made again.
        going = _from_now_on(going, now=times.next_at)
    return going if going.parked_at is None else replace(going, next_at=None)


def _from_now_on(schedule: StoredSchedule, *, now: Instant) -> StoredSchedule:
    """Return a schedule that has accounted for all until now; one that is parked waits for its code."""
    through = max(schedule.fired_through, now)
    next_at = _next(schedule, through) if schedule.parked_at is None else None
    return replace(schedule, fired_through=through, next_at=next_at)


def _next(schedule: StoredSchedule, instant: Instant) -> Instant | None:
    trigger = trigger_if_readable(schedule.trigger)
    # A process that can read the trigger corrects the time, so it is to look at once.
    return instant if trigger is None else next_look_after(trigger, instant, made=schedule.made)


def _missed(schedule: StoredSchedule, *, reason: str, now: Instant) -> tuple[NewJob, ...]:
    """Return the one record of what fell due and did not run since the schedule last fired, if anything did."""
    trigger = trigger_if_readable(schedule.trigger)
    # What a trigger of a later version missed is not known here; one that has made all its jobs missed nothing.
    if trigger is None or jobs_left(trigger, made=schedule.made) == 0:
        return ()
    found = passed_occurrences(trigger, after=schedule.fired_through, until=now, factor=_SEARCH_FACTOR)
    if found.earlier is None:
        return ()
    # If there are too many to count, the record has the right last one, but a lower number.
    last = trigger.last(schedule.fired_through, now) or found.earlier.last
    return (skipped_record(schedule, replace(found.earlier, last=last), reason=reason),)


def declaration(schedule: StoredSchedule, *, trigger: str) -> str:
    """Return the text by which a declaration is recognised; `trigger` as it was written, without an anchor."""
    values = {name: getattr(schedule, name) for name in SCHEDULE_FIELDS}
    return json.dumps({"trigger": trigger, **values}, sort_keys=True, separators=(",", ":"))


def declare(
    before: StoredSchedule | None, new: StoredSchedule, *, who: str, now: Instant
) -> ScheduleUpdate | None:
    """Return what to write if code declares something new; what operators changed stays, unless it changed there, too."""
    if before is None:
        entry = AuditEntry(verb="declare", target=new.name, who=who)
        return ScheduleUpdate(before=None, after=new, entry=entry)
    if before.declared == new.declared and before.owner == "code" and before.parked_at is None:
        return None
    was, wants = _declared_values(before), _declared_values(new)
    fresh = {name: getattr(new, name) for name in SCHEDULE_FIELDS if wants[name] != was[name]}
    after = replace(before, declared=new.declared, owner="code", parked_at=None, **fresh)
    # One that was not declared may have the same rule, wherever it counts from.
    same = wants["trigger"] == was["trigger"] or (
        not before.declared and _has(before, trigger_if_readable(wants["trigger"]))
    )
    change = revise(before, after, None if same else new, verb="declare", who=who, now=now)
    # The code may now declare what operators have already changed.
    return ScheduleUpdate(before=before, after=after) if change is None else change


def _declared_values(schedule: StoredSchedule) -> Mapping[str, Any]:
    """Return the values a schedule was declared with; where none was declared, its present value counts."""
    as_it_is = {name: getattr(schedule, name) for name in SCHEDULE_FIELDS} | {"trigger": schedule.trigger}
    try:
        said = json.loads(schedule.declared)
    except (ValueError, RecursionError):
        said = None
    return as_it_is | said if isinstance(said, dict) else as_it_is


class CodeSchedule(NamedTuple):
    """A schedule that code has declared."""

    name: str
    task: str
    parked: bool


def undeclared(
    schedules: Iterable[CodeSchedule], *, declared: Collection[str], tasks: Collection[str]
) -> frozenset[str]:
    """Return the schedules that no code declares, among those whose task is known here.

    Where the task is not known either, other code may be about to start, and the schedule keeps its place.
    """
    known = [one for one in schedules if one.task in tasks and not one.parked]
    return frozenset(one.name for one in known).difference(declared)


def undeclared_by_workers(
    names: frozenset[str], workers: Iterable[StoredWorker], *, now: Instant
) -> frozenset[str]:
    """Return the schedules that no worker has declared for a while; none if one does not say what it declares."""
    since = now - UNDECLARED_GRACE
    recent = [one.declares for one in workers if one.state == "alive" or one.lease_until > since]
    said = [declares for declares in recent if declares is not None]
    return frozenset() if len(said) < len(recent) else names.difference(*said)


def park(before: StoredSchedule, *, now: Instant) -> ScheduleUpdate | None:
    """Return what to write to park a schedule until code declares it; `None` if it is parked, or no code owns it."""
    if before.owner != "code" or before.parked_at is not None:
        return None
    return ScheduleUpdate(
        before=before,
        after=replace(before, parked_at=now, next_at=None),
        entry=AuditEntry(verb="park", target=before.name, who=ITSELF, detail={"reason": PARKED_REASON}),
        withdraw="schedule parked",
    )
