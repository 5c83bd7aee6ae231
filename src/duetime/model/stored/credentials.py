"""Who may do what over a network: tokens, sessions and links that sign in once, of which only digests are stored."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from duetime.model.ids import new_job_id
from duetime.model.time import Instant, Micros

CredentialId: TypeAlias = str


class Role(StrEnum):
    """What someone may do; each may do all that those before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class CredentialKind(StrEnum):
    """What a secret is for."""

    TOKEN = "token"  # noqa: S105 - the word, not one
    SESSION = "session"
    LINK = "link"
    """It signs in once."""
    CALENDAR = "calendar"
    """It stands in the address of a calendar, and opens nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCredential:
    """A secret that is to be accepted, as the store has it: without the secret."""

    kind: CredentialKind
    digest: str
    """What `digest_of` makes of the secret."""
    name: str
    """Whose it is, or what it is for."""
    role: Role
    queues: tuple[str, ...] | None = None
    """The queues that it is good for; `None` for all."""
    parent: CredentialId | None = None
    """What it was made from: it ends with that."""
    lifetime: Micros | None = None
    """How long it is good, by the store's clock; `None` until it is revoked."""
    id: CredentialId = field(default_factory=new_job_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A secret that was accepted, without the secret."""

    id: CredentialId
    kind: CredentialKind
    name: str
    role: Role
    queues: tuple[str, ...] | None
    parent: CredentialId | None
    created_at: Instant
    expires_at: Instant | None
    used_at: Instant | None
    """When it was last used, as far as that was noted."""
    revoked_at: Instant | None


def new_secret() -> str:
    """Return a secret that cannot be guessed, so that a plain digest of it tells nothing."""
    return f"dt_{secrets.token_urlsafe(32)}"


def digest_of(secret: str) -> str:
    """Return what is stored of a secret, and by which it is found."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
