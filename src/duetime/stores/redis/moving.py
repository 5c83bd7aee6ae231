"""The verbs of a Redis store about whole records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from duetime.errors import StoreError
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS, Facts

if TYPE_CHECKING:
    from duetime.model.whole import Kind, Whole

_STRETCH: Final = 500
"""How many records a call reads at the most."""
_SHOWN: Final = 5


class Moving(Part):
    """A part of `RedisStore`."""

    async def stretch(self, kind: Kind, *, after: str, until: str, limit: int) -> list[Whole]:
        """Return records by key as they are stored."""
        # Here and below, because no worker needs it.
        from duetime.stores.redis import wholes

        asked = wholes.question(kind)
        if kind in wholes.BY_TIME:
            keys = await self._keys(kind, after=after, until=until)
            return await self._some(kind, keys[:limit], asked)
        found: list[Whole] = []
        bounds = {"after": after, "till": until, "most": min(limit, _STRETCH)}
        async for facts, some in self._walk("stretch", asked | bounds):
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
            await self._calls.write("exchange", FACTS, {"kind": kind, "gone": gone, "records": stored})

    async def _keys(self, kind: Kind, *, after: str, until: str) -> list[str]:
        """Return what is listed by time in the order of its keys; a server in some locale would have another."""
        facts, _ = await self._calls.read("all_keys", FACTS, {"kind": kind})
        return sorted(key for key in facts["keys"] if after < key <= until)

    async def _some(self, kind: Kind, keys: Sequence[str], asked: Facts) -> list[Whole]:
        from duetime.stores.redis import wholes

        found: list[Whole] = []
        for first in range(0, len(keys), _STRETCH):
            some = {"keys": keys[first : first + _STRETCH]}
            _, packed = await self._calls.read("some", FACTS, asked | some)
            found += [wholes.record(kind, each) for each in packed]
        return found
