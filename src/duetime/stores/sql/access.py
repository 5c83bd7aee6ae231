"""Credentials: added, found by their digests, noted as used, and revoked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import msgspec

from duetime.model.stored.audit import NOTHING_NOTED, AuditEntry, Noted
from duetime.model.stored.credentials import Credential, CredentialId, CredentialKind, NewCredential, Role
from duetime.model.time import Micros
from duetime.stores.sql.driver import Query, Row, Script
from duetime.stores.sql.enqueue import note
from duetime.stores.sql.statements.rows import encode_batch
from duetime.stores.sql.verbs import SqlSubject, read, write


class SqlAccess(SqlSubject):
    """Who may do what over a network."""

    @write()
    def add_credential(self, new: NewCredential, *, entry: AuditEntry | None = None) -> Script[None]:
        """Accept a secret from now on."""
        queues = None if new.queues is None else msgspec.json.encode(new.queues).decode()
        yield Query(self._sql.add_credential, asdict(new) | {"queues": queues})
        yield from note(self._sql, [entry])

    @read()
    def find_credential(self, digest: str) -> Script[Credential | None]:
        """Return the one with this digest, if it is accepted now."""
        found = yield Query(self._sql.find_credential, {"digest": digest})
        return _read(found[0]) if found else None

    @read(rows=None)
    def credentials(self, kind: CredentialKind) -> Script[list[Credential]]:
        """Return all of a kind, newest first; those that are not accepted any more are there for a while."""
        return [_read(row) for row in (yield Query(self._sql.credentials, {"kind": kind}))]

    @write(atomic=False)
    def touch_credential(self, credential: CredentialId, *, lifetime: Micros | None = None) -> Script[bool]:
        """Note that it is used, and perhaps put off its end; False if it is not accepted any more."""
        values = {"id": credential, "lifetime": lifetime}
        return bool((yield Query(self._sql.touch_credential, values)))

    @write(rows=len)
    def revoke_credentials(
        self, ids: Sequence[CredentialId], *, noted: Noted = NOTHING_NOTED
    ) -> Script[frozenset[CredentialId]]:
        """Accept these no more, nor what was made from them; return those that this call has revoked."""
        listed = encode_batch((one,) for one in ids)
        revoked = frozenset(row[0] for row in (yield Query(self._sql.revoke_credentials, {"rows": listed})))
        yield Query(self._sql.revoke_children, {"rows": listed})
        yield from note(self._sql, map(noted.get, revoked))
        return revoked


def _read(row: Row) -> Credential:
    credential, kind, name, role, queues, *rest = row
    scope = None if queues is None else msgspec.json.decode(queues, type=tuple[str, ...])
    parent, created_at, expires_at, used_at, revoked_at = rest
    return Credential(
        id=credential,
        kind=CredentialKind(kind),
        name=name,
        role=Role(role),
        queues=scope,
        parent=parent,
        created_at=created_at,
        expires_at=expires_at,
        used_at=used_at,
        revoked_at=revoked_at,
    )
