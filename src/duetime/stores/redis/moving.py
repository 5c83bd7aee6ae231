"""The verbs of a Redis store about whole records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from duetime.errors import StoreError
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS

if TYPE_CHECKING:
    from duetime.model.whole import Kind, Whole

_STRETCH: Final = 500
"""How many records a call reads at the most."""
_SHOWN: Final = 5


class Moving(Part):
    """A part of `RedisStore`."""

    moved: str | None

    async def stretch(self, kind: Kind, *, after: str, until: str, limit: int) -> list[Whole]:
        """Return records by key as they are stored."""
        # Here and below, because no worker needs it.
        from duetime.stores.redis import wholes

        found: list[Whole] = []
        bounds = {"after": after, "till": until, "most": min(limit, _STRETCH)}
        async for facts, some in self._walk("stretch", wholes.question(kind) | bounds):
            if facts["broken"]:
                raise StoreError(
                    f"{self._calls.address}: {kind} {', '.join(facts['broken'][:_SHOWN])} cannot be read, because somebody "
                    "has edited them; mend or delete them"
                )
            found += [wholes.record(kind, packed) for packed in some]
            if len(found) >= limit:
                break
        return found[:limit]

    async def exchange(self, kind: Kind, gone: Sequence[str], records: Sequence[Whole]) -> None:
        """Remove records and store others as they are."""
        from duetime.stores.redis import wholes

        if gone or records:
            stored = [wholes.request(kind, record) for record in records]
            request = {"kind": kind, "gone": gone, "records": stored}
            await self._calls.write("exchange", FACTS, request, rows=len(gone) + len(records))

    async def set_moved(self, note: str | None) -> None:
        """Note that the work goes on elsewhere."""
        await self._calls.write("set_moved", FACTS, {"note": note})
        self.moved = note
