"""What every trigger can do."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol, Self, runtime_checkable

from duetime.errors import InvalidTrigger
from duetime.model.instants import EARLIEST, LATEST, Instant, from_datetime, to_datetime
from duetime.model.shown import shown


@runtime_checkable
class Trigger(Protocol):
    """A pure rule that says when something is due."""

    __slots__ = ()

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant`, or None if there is no more."""
        ...

    def describe(self) -> str:
        """Say the rule in English."""
        ...

    def to_spec(self) -> dict[str, object]:
        """Return the rule as JSON-able data that `from_spec` reads back."""
        ...

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first occurrence strictly after an aware `moment`, in UTC, or None if there is no more."""
        instant = self.after(from_datetime(moment, what="moment"))
        return None if instant is None else to_datetime(instant)

    def seeded(self, name: str) -> Self:
        """Return this rule with its hashed fields spread by `name`, unless it already has a seed."""
        del name
        return self

    def anchored(self, instant: Instant) -> Self:
        """Return this rule counting from `instant`, unless it already has a start."""
        del instant
        return self


def check_instant(value: object, *, what: str) -> None:
    """Raise `InvalidTrigger` unless `value` is an instant in range."""
    check_whole(value, what=what, low=EARLIEST, high=LATEST, expected="an instant between 1970 and 9000")


def check_whole(value: object, *, what: str, low: int, high: int, expected: str) -> None:
    """Raise `InvalidTrigger` unless `value` is a whole number in range."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidTrigger(f"{what} must be {expected}, not {shown(value)}")
