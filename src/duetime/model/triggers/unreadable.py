"""Stands for a stored trigger, or a schedule, that this process cannot read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from duetime.model.instants import Instant
from duetime.model.triggers.base import Trigger


@dataclass(frozen=True, slots=True)
class Unreadable(Trigger):
    """A rule of a later version, or one that needs what is not installed here: it can be shown, and that is all."""

    text: str
    """As it is stored."""
    problem: str
    what: str = "a trigger"
    """What cannot be read: the trigger itself, or the row it is in."""

    def after(self, instant: Instant) -> None:
        """Tell no occurrence."""
        del instant

    def describe(self) -> str:
        """Say why it cannot be read."""
        return f"{self.what} that cannot be read here: {self.problem}"

    def to_spec(self) -> dict[str, object]:
        """Return what is stored."""
        try:
            spec = json.loads(self.text)
        except (ValueError, RecursionError):
            spec = None
        return cast("dict[str, object]", spec) if isinstance(spec, dict) else {"text": self.text}
