"""What becomes of a stored schedule when code declares it: only what changed in the code is applied."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from duetime.model.audit import AuditEntry
from duetime.model.instants import Instant
from duetime.model.schedule import Change, StoredSchedule

FIELDS: Final = (
    "task", "payload", "queue", "priority", "on_crash", "retries", "timeout", "terms", "overlap", "overlap_limit",
    "misfire", "misfire_window", "misfire_limit", "pause_after",
)  # fmt: skip
"""What is declared beside the trigger."""

CHANGED: Final = "schedule changed"


def declaration(schedule: StoredSchedule, *, trigger: str) -> str:
    """Return the text of a declaration, by which it is known again; `trigger` as it was written, without an anchor."""
    values = {name: getattr(schedule, name) for name in FIELDS}
    return json.dumps({"trigger": trigger, **values}, sort_keys=True, separators=(",", ":"))


def declare(before: StoredSchedule | None, new: StoredSchedule, *, who: str, now: Instant) -> Change | None:
    """Return what to write for a declaration; `None` when the code says what it said before.

    What operators have changed meanwhile stays, unless the code has changed in the same place.
    """
    if before is None:
        return Change(before=None, after=new, entry=AuditEntry(verb="declare", target=new.name, who=who))
    if before.declared == new.declared and before.owner == "code" and before.parked_at is None:
        return None
    was, wants = _said(before), _said(new)
    fresh = {name: getattr(new, name) for name in FIELDS if wants[name] != was[name]}
    after = replace(before, declared=new.declared, owner="code", **fresh)
    retimed = wants["trigger"] != was["trigger"]
    if retimed or before.parked_at is not None:
        after = _retimed(after, new, now=now)
    detail = differences(before, after)
    if not detail and not retimed:
        return Change(before=before, after=after)
    return Change(
        before=before,
        after=replace(after, streak_from=now),
        entry=AuditEntry(verb="declare", target=new.name, who=who, detail=detail),
        withdraw=CHANGED,
        again=not retimed,
        floor=now,
        # Or a deployment a moment before an occurrence would swallow it.
        held=False,
    )


def differences(before: StoredSchedule, after: StoredSchedule) -> dict[str, list[object]]:
    """Return the fields that differ, each with what it was and what it is."""
    names = ("trigger", *FIELDS, "owner", "parked_at")
    pairs = {name: [getattr(before, name), getattr(after, name)] for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _retimed(after: StoredSchedule, new: StoredSchedule, *, now: Instant) -> StoredSchedule:
    fired_through = max(after.fired_through, now)
    return replace(
        after, trigger=new.trigger, parked_at=None, fired_through=fired_through, next_at=new.next_at
    )


def _said(schedule: StoredSchedule) -> Mapping[str, Any]:
    """Return what a schedule was declared as; what was not declared counts as declared the way it is."""
    as_it_is = {name: getattr(schedule, name) for name in FIELDS} | {"trigger": schedule.trigger}
    try:
        said = json.loads(schedule.declared)
    except ValueError:
        return as_it_is
    if not isinstance(said, dict):
        return as_it_is
    # Earlier versions kept the spec of the trigger alone.
    return {**as_it_is, **({"trigger": schedule.declared} if "type" in said else said)}
