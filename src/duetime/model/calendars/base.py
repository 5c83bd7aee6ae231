"""What every calendar can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from duetime.model.instants import Instant

if TYPE_CHECKING:
    from duetime.model.calendars.joined import Joined


@runtime_checkable
class Calendar(Protocol):
    """A pure rule that excludes stretches of time, each with its first instant and without its last."""

    __slots__ = ()

    def until(self, instant: Instant) -> Instant | None:
        """Return an end of the excluded stretch around `instant`, or None if the calendar leaves it open.

        What is excluded goes on for so long at least; whether it goes on after that, the end itself can be asked.
        """
        ...

    def edge(self, instant: Instant) -> Instant:
        """Return an instant up to which all is excluded or all is open, as `instant` is."""
        ...

    def why(self, instant: Instant) -> str | None:
        """Say why `instant` is excluded, or None if it is not."""
        ...

    def describe(self, *, beside: str = "") -> str:
        """Say in English what is excluded; its zone is left out where `beside` names it already."""
        ...

    def to_spec(self) -> dict[str, object]:
        """Return the calendar as JSON-able data that `from_spec` reads back."""
        ...

    def placed(self, tz: str) -> Calendar:
        """Return this calendar read in `tz`, unless it has a zone of its own."""
        del tz
        return self

    def __or__(self, other: Calendar) -> Joined:
        from duetime.model.calendars.joined import Joined

        return Joined((self, other))
