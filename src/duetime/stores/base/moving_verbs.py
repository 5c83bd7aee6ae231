"""What every store can do for those who move everything from it to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duetime.model.whole import Kind, Whole


class MovingStore(Protocol):
    """Whole records, and whether they are still where the work is."""

    async def stretch(self, kind: Kind, *, after: str, until: str, limit: int) -> list[Whole]:
        """Return records by key as they are stored, behind one key and up to another, the first so many of them."""
        ...

    async def exchange(self, kind: Kind, gone: Sequence[str], records: Sequence[Whole]) -> None:
        """Remove records by key and store others as they are, parts included, in one atomic step; safe to repeat.

        A record whose key is there and is not to go stays as it is. Nobody is hinted, and nothing is counted or judged.
        """
        ...

    async def set_moved(self, note: str | None) -> None:
        """Note that the work goes on elsewhere, so that no worker is registered here any more; `None`: it is here."""
        ...
