"""The verbs of a SQL store about whole records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from duetime.stores.sql import scripts
from duetime.stores.sql.driver import Driver
from duetime.stores.sql.loader import Statements

if TYPE_CHECKING:
    from duetime.model.whole import Kind, Whole


class Moving:
    """A part of `SqlStore`, which has the driver and the statements."""

    _driver: Driver
    _sql: Statements
    moved: str | None

    async def stretch(self, kind: Kind, *, after: str, until: str, limit: int) -> list[Whole]:
        """Return records by key as they are stored."""
        return await self._driver.read(
            lambda: scripts.moving.stretch(self._sql, kind, after=after, until=until, limit=limit), rows=None
        )

    async def exchange(self, kind: Kind, gone: Sequence[str], records: Sequence[Whole]) -> None:
        """Remove records and store others as they are."""
        if gone or records:
            await self._driver.write(
                lambda: scripts.moving.exchange(self._sql, kind, gone, records), rows=None
            )

    async def set_moved(self, note: str | None) -> None:
        """Note that the work goes on elsewhere."""
        await self._driver.write(lambda: scripts.moving.set_moved(self._sql, note))
        self.moved = note
