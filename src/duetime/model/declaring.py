"""What becomes of a stored schedule when code declares it: only what changed in the code is applied."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from duetime.model.audit import AuditEntry
from duetime.model.instants import Instant
from duetime.model.schedule import Change, StoredSchedule
from duetime.model.schedule_moves import FIELDS, revise
from duetime.model.triggers.text import readable, same_rule


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
    after = replace(before, declared=new.declared, owner="code", parked_at=None, **fresh)
    same = wants["trigger"] == was["trigger"] or _runs_by(before, wants["trigger"])
    times = None if same else new
    change = revise(before, after, times, verb="declare", who=who, now=now)
    # The code may have come to what operators have made of it.
    return Change(before=before, after=after) if change is None else change


def _runs_by(schedule: StoredSchedule, declared: str) -> bool:
    """Whether a schedule that was not declared has the trigger of a declaration, wherever it counts from."""
    stored, written = readable(schedule.trigger), readable(declared)
    return not schedule.declared and stored is not None and written is not None and same_rule(stored, written)


def _said(schedule: StoredSchedule) -> Mapping[str, Any]:
    """Return what a schedule was declared as; what was not declared counts as declared the way it is."""
    as_it_is = {name: getattr(schedule, name) for name in FIELDS} | {"trigger": schedule.trigger}
    try:
        said = json.loads(schedule.declared)
    except (ValueError, RecursionError):
        return as_it_is
    if not isinstance(said, dict):
        return as_it_is
    # Earlier versions kept the spec of the trigger alone.
    return {**as_it_is, **({"trigger": schedule.declared} if "type" in said else said)}
