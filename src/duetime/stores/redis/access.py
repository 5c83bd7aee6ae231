"""Credentials: added, found by their digests, noted as used, and revoked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import msgspec

from duetime.model.stored.audit import NOTHING_NOTED, AuditEntry, Noted
from duetime.model.stored.credentials import Credential, CredentialId, CredentialKind, NewCredential
from duetime.model.time import Micros
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.messages import entry_fields, noted_fields

_FIELDS = tuple(Credential.__dataclass_fields__)


class RedisAccess(RedisStorePart):
    """A part of `RedisStore`."""

    async def add_credential(self, new: NewCredential, *, entry: AuditEntry | None = None) -> None:
        """Accept a secret from now on."""
        request = {"new": asdict(new), "entry": None if entry is None else entry_fields(entry)}
        await self._calls.write("add_credential", request)

    async def find_credential(self, digest: str) -> Credential | None:
        """Return the one with this digest, if it is accepted now."""
        found = (await self._calls.read("find_credential", {"digest": digest})).rows
        return _read(found[0]) if found else None

    async def credentials(self, kind: CredentialKind) -> list[Credential]:
        """Return all of a kind, newest first."""
        found = map(_read, (await self._calls.read("credentials", {"kind": kind})).rows)
        return sorted(found, key=lambda one: (one.created_at, one.id), reverse=True)

    async def touch_credential(self, credential: CredentialId, *, lifetime: Micros | None = None) -> bool:
        """Note that it is used, and perhaps put off its end; False if it is not accepted any more."""
        facts, _ = await self._calls.write("touch_credential", {"id": credential, "lifetime": lifetime})
        return bool(facts["good"])

    async def revoke_credentials(
        self, ids: Sequence[CredentialId], *, noted: Noted = NOTHING_NOTED
    ) -> frozenset[CredentialId]:
        """Accept these no more, nor what was made from them; return those that this call has revoked."""
        if not ids:
            return frozenset()
        request = {"ids": ids, "noted": noted_fields(noted, ids)}
        facts, _ = await self._calls.write("revoke_credentials", request)
        return frozenset(facts["revoked"])


def _read(row: Sequence[object]) -> Credential:
    return msgspec.convert(dict(zip(_FIELDS, row, strict=True)), Credential)
