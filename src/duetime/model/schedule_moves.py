"""What becomes of a schedule when somebody asks for something; each decision is a change that the store makes or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from duetime.errors import InvalidTime, NothingToSkip
from duetime.model.audit import AuditEntry
from duetime.model.instants import Instant, in_words, to_datetime
from duetime.model.job import NewJob
from duetime.model.occurrence import Span, skipped
from duetime.model.passed import passed
from duetime.model.remaining import left, next_after, searched_until
from duetime.model.schedule import Change, StoredSchedule
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.text import from_text, readable, same_rule, to_text

FIELDS: Final = (
    "task", "payload", "queue", "priority", "on_crash", "retries", "timeout", "terms", "overlap", "overlap_limit",
    "misfire", "misfire_window", "misfire_limit", "pause_after",
)  # fmt: skip
"""What a schedule says beside its trigger."""

CHANGED: Final = "schedule changed"
PAUSED: Final = "paused"
PARKED: Final = "parked"
EDITED: Final = "edited"

# Nothing is left for later where somebody asks once.
_PATIENCE = 5


def put(
    before: StoredSchedule | None, new: StoredSchedule, trigger: Trigger, *, who: str, now: Instant
) -> Change | None:
    """Return what to write so that a schedule is as it was put; `None` when it is so already.

    What code declares stays the code's own, and what it has declared stays known: so the change holds until the code
    changes in the same place. One that is parked is taken over, since no code declares it any more.
    """
    if before is None:
        return Change(before=None, after=new, entry=AuditEntry(verb="put", target=new.name, who=who))
    after = replace(before, **{name: getattr(new, name) for name in FIELDS})
    if before.parked_at is not None:
        after = replace(after, owner="user", declared="", parked_at=None)
    times = None if _has(before, trigger) else new
    return revise(before, after, times, verb="put", who=who, now=now)


def edit(
    before: StoredSchedule, after: StoredSchedule, trigger: Trigger | None, *, who: str, now: Instant
) -> Change | None:
    """Return what to write so that a schedule is as in `after`, with this trigger if one is given."""
    times = None
    if trigger is not None and not _has(before, trigger):
        rule = trigger.anchored(now)
        times = replace(before, trigger=to_text(rule), next_at=next_after(rule, now, made=0))
    return revise(before, after, times, verb="edit", who=who, now=now)


def revise(
    before: StoredSchedule,
    after: StoredSchedule,
    times: StoredSchedule | None,
    *,
    verb: str,
    who: str,
    now: Instant,
) -> Change | None:
    """Return what to write so that a schedule is as in `after`, with the trigger of `times` if it is another one.

    Its times stay unless the trigger changes or it was parked for long: then it goes on from now, and one record tells
    what has not run. A new trigger counts its jobs anew. `None` when nothing differs.
    """
    missed: tuple[NewJob, ...] = ()
    if times is None and before.parked_at is not None and now - before.parked_at <= after.misfire_window:
        # As after an outage: what has fallen due meanwhile is late, and its misfire policy says what becomes of it.
        after = replace(after, next_at=_next(after, after.fired_through))
    elif times is not None or after.parked_at != before.parked_at:
        missed = _missed(before, reason=standstill(before) or EDITED, now=now)
        after = _from_now_on(after, now=now) if times is None else _timed(after, times, now=now)
    detail = differences(before, after)
    if not detail and times is None:
        return None
    return Change(
        before=before,
        after=replace(after, streak_from=now),
        entry=AuditEntry(verb=verb, target=before.name, who=who, detail=detail),
        jobs=missed,
        withdraw=CHANGED,
        # What a new trigger has before what was planted for the old one is not lost, so it goes on from now.
        again=times is None or after.fired_through > now,
        # Or a change a moment before an occurrence would swallow it.
        held=False,
    )


def differences(before: StoredSchedule, after: StoredSchedule) -> dict[str, list[object]]:
    """Return the fields that differ, each with what it was and what it is."""
    names = ("trigger", *FIELDS, "owner", "parked_at")
    pairs = {name: [getattr(before, name), getattr(after, name)] for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def pause(
    before: StoredSchedule, *, reason: str | None, until: Instant | None, who: str, now: Instant
) -> Change:
    """Return what to write so that a schedule does not fire; what it has planted is taken back."""
    if until is not None and until <= now:
        text = f"until {to_datetime(until).isoformat()} lies in the past; leave it out to pause until somebody resumes"
        raise InvalidTime(text)
    after = replace(
        before, paused_at=before.paused_at or now, paused_reason=reason, paused_by=who, paused_until=until
    )
    detail = {"reason": reason, "until": until}
    entry = AuditEntry(verb="pause", target=before.name, who=who, detail=detail)
    return Change(before=before, after=after, entry=entry, withdraw="schedule paused")


def resume(before: StoredSchedule, *, who: str, now: Instant) -> Change | None:
    """Return what to write so that a paused schedule goes on from now; `None` when it is not paused.

    One record tells what has not run meanwhile.
    """
    if before.paused_at is None:
        return None
    after = replace(
        before, paused_at=None, paused_reason=None, paused_by=None, paused_until=None, streak_from=now
    )
    entry = AuditEntry(verb="resume", target=before.name, who=who)
    if before.parked_at is not None:
        return Change(before=before, after=after, entry=entry)
    jobs = _missed(before, reason=PAUSED, now=now)
    return Change(before=before, after=_from_now_on(after, now=now), entry=entry, jobs=jobs)


def skip(before: StoredSchedule, *, planted: Instant | None, who: str) -> tuple[Instant, Change]:
    """Return the next occurrence and what to write so that it does not run; one that is planted is taken back."""
    upcoming = before.next_at if planted is None else planted
    why = standstill(before) or (None if upcoming is not None else "over")
    if why is not None or upcoming is None:
        text = f"schedule {before.name!r} is {why}, so nothing of it is about to run"
        raise NothingToSkip(text)
    trigger = from_text(before.trigger)
    if planted is None and searched_until(trigger, upcoming) is not None:
        raise NothingToSkip(f"no occurrence of schedule {before.name!r} is found up to {in_words(upcoming)}")
    fired_through = max(before.fired_through, upcoming)
    next_at = next_after(trigger, fired_through, made=0)
    after = replace(before, fired_through=fired_through, next_at=next_at)
    reason = f"skipped by {who}"
    change = Change(
        before=before,
        after=after,
        entry=AuditEntry(verb="skip", target=before.name, who=who, detail={"occurrence": upcoming}),
        jobs=(skipped(before, Span(upcoming, upcoming, 1), reason=reason),),
        withdraw=None if planted is None else reason,
        again=False,
        only=planted,
    )
    return upcoming, change


def standstill(schedule: StoredSchedule) -> str | None:
    """Return the reason why a schedule stands still, if it does."""
    if schedule.parked_at is not None:
        return PARKED
    return PAUSED if schedule.paused_at is not None else None


def deletion(before: StoredSchedule, *, who: str) -> AuditEntry:
    """Return what is kept of a schedule that goes: enough to tell later when it would have run."""
    detail = {"trigger": [before.trigger, None], "task": [before.task, None]}
    return AuditEntry(verb="delete", target=before.name, who=who, detail=detail)


def _has(schedule: StoredSchedule, trigger: Trigger) -> bool:
    """Whether a schedule has this trigger; one that cannot be read here is another."""
    stored = readable(schedule.trigger)
    return stored is not None and same_rule(stored, trigger)


def _timed(schedule: StoredSchedule, times: StoredSchedule, *, now: Instant) -> StoredSchedule:
    """Return a schedule that goes on from now by the trigger of `times`; one that is parked waits for its code."""
    going = replace(schedule, trigger=times.trigger, made=0, fired_through=now, next_at=times.next_at)
    if times.next_at is not None and times.next_at == schedule.fired_through:
        # Planted or skipped, so it is not to be made once more.
        going = _from_now_on(going, now=times.next_at)
    return going if going.parked_at is None else replace(going, next_at=None)


def _from_now_on(schedule: StoredSchedule, *, now: Instant) -> StoredSchedule:
    """Return a schedule that has accounted for all until now; one that is parked waits for its code."""
    through = max(schedule.fired_through, now)
    next_at = _next(schedule, through) if schedule.parked_at is None else None
    return replace(schedule, fired_through=through, next_at=next_at)


def _next(schedule: StoredSchedule, instant: Instant) -> Instant | None:
    trigger = readable(schedule.trigger)
    # Whoever can read it puts the time right: so let them look at once.
    return instant if trigger is None else next_after(trigger, instant, made=schedule.made)


def _missed(schedule: StoredSchedule, *, reason: str, now: Instant) -> tuple[NewJob, ...]:
    """Return the one record of what has come and not run since the schedule last fired, if there is any."""
    trigger = readable(schedule.trigger)
    # What a trigger of a later version has missed cannot be told; one that has made all its jobs has missed none.
    if trigger is None or left(trigger, made=schedule.made) == 0:
        return ()
    found = passed(trigger, after=schedule.fired_through, until=now, patience=_PATIENCE)
    if found.earlier is None:
        return ()
    # Where there are more than can be walked over, they are told with the last of them, if not with their number.
    last = trigger.last(schedule.fired_through, now) or found.earlier.last
    return (skipped(schedule, replace(found.earlier, last=last), reason=reason),)
