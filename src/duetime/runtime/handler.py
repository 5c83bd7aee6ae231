"""What a worker needs to run a task: the function, its options and its codec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from duetime.model.limit import gate_name
from duetime.model.task import TaskOptions
from duetime.model.terms import Terms
from duetime.runtime.arguments import Arguments


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

    def terms_of(self, payload: str, terms: Terms) -> Terms:
        """Return the terms of a call with these arguments."""
        gate = self.gate_of(payload)
        return terms if gate is None else replace(terms, gate=gate)
