"""The limit that jobs of a schedule run under: the one that their task has today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from duetime.model.schedule import StoredSchedule
from duetime.model.terms import Terms
from duetime.runtime.handler import Handler


def under_limit(schedule: StoredSchedule, handlers: Mapping[str, Handler]) -> StoredSchedule:
    """Return a schedule whose jobs pass the gate of their task as it is known here; the stored one may be of old."""
    handler = handlers.get(schedule.task)
    if handler is None or (schedule.terms is None and handler.options.gate is None):
        return schedule
    terms = Terms.from_text(schedule.terms)
    try:
        gate = handler.gate_of(schedule.payload)
    except msgspec.MsgspecError:
        # The arguments do not fit the task any more: the job will say so.
        return schedule
    return schedule if gate == terms.gate else replace(schedule, terms=replace(terms, gate=gate).to_text())
