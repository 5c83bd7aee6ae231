"""A trigger whose schedule makes so many jobs and then ends."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.model.triggers.base import check_times
from duetime.model.triggers.compound import Wrapper, quoted


@dataclass(frozen=True, slots=True)
class AtMost(Wrapper):
    """The occurrences of a trigger until `most` of them have become jobs; skipped ones do not count."""

    most: int

    def __post_init__(self) -> None:
        Wrapper.__post_init__(self)
        check_times(self.most, what="at_most()")
        object.__setattr__(self, "times", min(self.most, self.trigger.times or self.most))

    def describe(self) -> str:
        """Say the rule in English."""
        return f"{quoted(self.trigger)}, at most {'once' if self.most == 1 else f'{self.most} times'}"

    def to_spec(self) -> dict[str, object]:
        """Return the rule as JSON-able data."""
        return {"type": "at_most", "trigger": self.trigger.to_spec(), "most": self.most}
