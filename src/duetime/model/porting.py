"""What becomes of a stored schedule when a file has it, too."""

from __future__ import annotations

from dataclasses import replace

from duetime.model.audit import AuditEntry
from duetime.model.instants import Instant
from duetime.model.portable import Pause
from duetime.model.schedule import Change, StoredSchedule
from duetime.model.schedule_moves import put
from duetime.model.triggers.base import Trigger

VERB = "import"


def port(
    before: StoredSchedule | None,
    new: StoredSchedule,
    trigger: Trigger,
    *,
    pause: Pause | None,
    who: str,
    now: Instant,
) -> Change | None:
    """Return what to write so that a schedule is as the file has it; `None` when it is so already.

    What is paused stays paused even if it runs where the file comes from, and counts of jobs made are taken over by
    schedules that are new here.
    """
    change = put(before, new, trigger, who=who, now=now)
    if change is not None:
        entry = None if change.entry is None else replace(change.entry, verb=VERB)
        change = replace(change, entry=entry)
    if pause is None:
        return change
    after = new if before is None else before if change is None else change.after
    paused = replace(
        after,
        paused_at=after.paused_at or now,
        paused_reason=pause.reason,
        paused_by=pause.by,
        paused_until=pause.until,
    )
    if change is not None:
        return replace(change, after=paused)
    if paused == before:
        return None
    detail = {"reason": pause.reason, "until": pause.until}
    entry = AuditEntry(verb=VERB, target=new.name, who=who, detail=detail)
    return Change(before=before, after=paused, entry=entry, withdraw="schedule paused")
