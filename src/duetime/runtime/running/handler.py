"""What a worker needs to run a task: the function, its options, its codec and its limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from duetime.model.job import JobTerms
from duetime.model.limits import gate_name
from duetime.model.schedule.record import StoredSchedule
from duetime.model.task import TaskOptions
from duetime.runtime.running.arguments import Arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A registered function."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    options: TaskOptions
    arguments: Arguments

    def gate_of(self, payload: str) -> str | None:
        """Return the name of the gate that a call with these arguments passes; `None` when nothing limits it."""
        gate = self.options.gate
        if gate is None:
            return None
        value = "" if gate.by is None else self.arguments.value_of(payload, gate.by)
        return gate_name(self.name, gate.by, value)

    def terms_of(self, payload: str, terms: JobTerms) -> JobTerms:
        """Return the terms of a call with these arguments."""
        gate = self.gate_of(payload)
        return terms if gate is None else replace(terms, gate=gate)


def with_current_gate(schedule: StoredSchedule, handlers: Mapping[str, Handler]) -> StoredSchedule:
    """Return a schedule whose jobs pass the gate of their task as it is known here; the stored one may be of old."""
    handler = handlers.get(schedule.task)
    if handler is None or (schedule.terms is None and handler.options.gate is None):
        return schedule
    terms = JobTerms.from_text(schedule.terms)
    try:
        gate = handler.gate_of(schedule.payload)
    except msgspec.MsgspecError:
        # The arguments do not fit the task any more: the job will say so.
        return schedule
    return schedule if gate == terms.gate else replace(schedule, terms=replace(terms, gate=gate).to_text())
