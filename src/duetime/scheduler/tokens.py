"""Tokens: secrets by which programs and people use the HTTP API, shown once and stored as digests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from duetime.errors import InvalidOption, TokenNotFound
from duetime.model.stored.credentials import (
    Credential,
    CredentialKind,
    NewCredential,
    Role,
    digest_of,
    new_secret,
)
from duetime.model.text import check_choice, check_name, printable
from duetime.model.time import Duration, from_datetime, parse_duration
from duetime.scheduler.audit import actor_name, entry_about
from duetime.scheduler.records import StoredRecord
from duetime.stores.base import Store

DEFAULT_LIFETIME = "90d"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord(StoredRecord):
    """A token without its secret, or the key of a calendar's address."""

    id: str
    kind: CredentialKind
    name: str
    """What it is for; kept with each change that is made with it."""
    role: Role
    queues: tuple[str, ...] | None
    """The queues that it is good for; `None` for all."""
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    """When it was last used, to the minute."""
    revoked_at: datetime | None

    @classmethod
    def from_stored(cls, credential: Credential) -> Self:
        """Read what the store has kept."""
        return cls.from_row(credential)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token that was just made."""

    id: str
    name: str
    secret: str = field(repr=False)
    """What is sent as `Authorization: Bearer ...`; it is stored nowhere."""


class Tokens:
    """Makes, lists and revokes tokens."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    async def add(
        self,
        name: str,
        *,
        role: Role | str = Role.VIEWER,
        queues: Collection[str] | None = None,
        expires: Duration | None = DEFAULT_LIFETIME,
        by: str | None = None,
    ) -> NewToken:
        """Make a token; its secret is in the answer and nowhere else. `None` for `expires`: it is good until it is revoked.

        With `queues`, it sees and touches only what is in these.
        """
        actor_name(name)  # It will be kept with changes.
        if any(one.name == name for one in await self.good()):
            raise InvalidOption(f"there is a token {name!r} already; revoke it first, or choose another name")
        return await self.make(CredentialKind.TOKEN, name, role=role, queues=queues, expires=expires, by=by)

    async def make(
        self,
        kind: CredentialKind,
        name: str,
        *,
        role: Role | str,
        queues: Collection[str] | None = None,
        expires: Duration | None = None,
        parent: str | None = None,
        by: str | None = None,
    ) -> NewToken:
        """Make a secret of any kind; only what lasts is put on record."""
        if isinstance(queues, str) or (queues is not None and not queues):
            raise InvalidOption("queues must be a list such as ['mail'], or None for all")
        checked = None if queues is None else tuple(sorted({check_name(one, what="queue") for one in queues}))
        secret, granted = new_secret(), Role(check_choice(role, [one.value for one in Role], what="role"))
        lifetime = None if expires is None else parse_duration(expires, what="expires")
        new = NewCredential(
            kind=kind,
            digest=digest_of(secret),
            name=name,
            role=granted,
            queues=checked,
            parent=parent,
            lifetime=lifetime,
        )
        entry = entry_about("token", name, "add", by, role=granted, queues=checked, good_for=kind)
        lasts = kind in {CredentialKind.TOKEN, CredentialKind.CALENDAR}
        await self._store().add_credential(new, entry=entry if lasts else None)
        return NewToken(id=new.id, name=name, secret=secret)

    async def list(self) -> Sequence[TokenRecord]:
        """Return all tokens and keys of calendars, newest first; those that are over are kept for a while."""
        found = [
            TokenRecord.from_stored(one)
            for kind in (CredentialKind.TOKEN, CredentialKind.CALENDAR)
            for one in await self._store().credentials(kind)
        ]
        return sorted(found, key=lambda one: (one.created_at, one.id), reverse=True)

    async def revoke(self, token: str, *, by: str | None = None) -> None:
        """Accept a token no more, named by its name or id, nor the sessions made from it; raises `TokenNotFound`.

        A process that has seen it lately takes up to five seconds to notice.
        """
        meant = [one for one in await self.good() if token in (one.id, one.name)]
        noted = {one.id: entry_about("token", one.name, "revoke", by) for one in meant}
        if not await self._store().revoke_credentials(list(noted), noted=noted):
            raise TokenNotFound(f"no token that is good is called {printable(token)!r}")

    async def good(self) -> Sequence[TokenRecord]:
        """Return those that are accepted now."""
        now = await self._store().now()
        listed = await self.list()
        return [
            one
            for one in listed
            if one.revoked_at is None and (one.expires_at is None or from_datetime(one.expires_at) > now)
        ]
