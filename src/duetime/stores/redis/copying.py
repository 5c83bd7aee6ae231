"""Whole records, for a copy to another store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from duetime.errors import StoreError
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.rows import ANSWER_DECODER

if TYPE_CHECKING:
    from duetime.model.store_copy import RecordKind, WholeRecord


_RECORDS_PER_CALL: Final = 500
"""How many records a call reads at the most."""
_KEYS_SHOWN: Final = 5


class RedisCopying(RedisStorePart):
    """A part of `RedisStore`."""

    moved: str | None

    async def stretch(self, kind: RecordKind, *, after: str, until: str, limit: int) -> list[WholeRecord]:
        """Return records by key as they are stored."""
        # Here and below, because no worker needs it.
        from duetime.stores.redis import whole_records as wholes

        found: list[WholeRecord] = []
        bounds = {"after": after, "till": until, "most": min(limit, _RECORDS_PER_CALL)}
        async for facts, some in self._walk("stretch", wholes.record_columns(kind) | bounds):
            if facts["broken"]:
                raise StoreError(
                    f"{self._calls.address}: {kind} {', '.join(facts['broken'][:_KEYS_SHOWN])} cannot be read, because somebody "
                    "has edited them; mend or delete them"
                )
            found += [wholes.read_record(kind, packed) for packed in some]
            if len(found) >= limit:
                break
        return found[:limit]

    async def exchange(self, kind: RecordKind, gone: Sequence[str], records: Sequence[WholeRecord]) -> None:
        """Remove records and store others as they are."""
        from duetime.stores.redis import whole_records as wholes

        if gone or records:
            stored = [wholes.record_fields(kind, record) for record in records]
            request = {"kind": kind, "gone": gone, "records": stored}
            await self._calls.write("exchange", ANSWER_DECODER, request, rows=len(gone) + len(records))

    async def set_moved(self, note: str | None) -> None:
        """Note that the work goes on elsewhere."""
        await self._calls.write("set_moved", ANSWER_DECODER, {"note": note})
        self.moved = note
