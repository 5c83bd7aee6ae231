"""Who did what: the name of who asks, what is noted of a change, and what is on record."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from duetime.errors import InvalidOption
from duetime.model.ids import GivenId, read_id
from duetime.model.stored.audit import AuditEntry, StoredAuditEntry, Subject
from duetime.model.text import check_text, shown
from duetime.model.time import to_datetime
from duetime.scheduler.lookup import check_limit
from duetime.scheduler.pages import Page, read_cursor, write_cursor
from duetime.scheduler.records import readable_detail
from duetime.stores.base import Store

MAX_ACTOR_NAME = 200
_KIND: Final = "audit"
"""Of cursors."""


def actor_name(by: str | None) -> str:
    """Return the name that was given, else the user and the host of this process."""
    if by is None:
        return f"{_user_name()}@{socket.gethostname()}"[:MAX_ACTOR_NAME]
    if not isinstance(by, str) or not 0 < len(by) <= MAX_ACTOR_NAME:
        raise InvalidOption(f"by must say who asks, in 1 to {MAX_ACTOR_NAME} characters, not {shown(by)}")
    return check_text(by, what="by")


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        # In a container the user often has a number and no name.
        return f"user-{os.getuid()}"


def entry_about(kind: str, name: str, verb: str, by: str | None, **detail: object) -> AuditEntry:
    """Return what is to be noted of a change, without details that say nothing."""
    said = {key: value for key, value in detail.items() if value is not None}
    return AuditEntry(verb=verb, target=Subject(kind, name).target(), who=actor_name(by), detail=said)


def entries_about_jobs(
    ids: Iterable[str], verb: str, by: str | None, **detail: object
) -> dict[str, AuditEntry]:
    """Return what is to be noted of each of some jobs."""
    who = actor_name(by)
    return {job_id: entry_about("job", job_id, verb, who, **detail) for job_id in ids}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """Something that was done."""

    at: datetime
    who: str
    """As given by `by`; for what code declares, the process; `duetime` for what no one asked for."""
    verb: str
    kind: str
    """What it was done to: a `schedule`, `job`, `queue`, `worker`, or by a `copy`."""
    name: str
    """Which one: its name or its id."""
    detail: Mapping[str, Any]

    @classmethod
    def from_stored(cls, entry: StoredAuditEntry) -> AuditRecord:
        """Read what the store has kept."""
        kind, name = Subject.of(entry.target)
        detail = readable_detail(entry.detail)
        return cls(
            at=to_datetime(entry.at), who=entry.who, verb=entry.verb, kind=kind, name=name, detail=detail
        )


class Audit:
    """Tells who did what."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    async def list(
        self,
        *,
        schedule: str | None = None,
        job: GivenId | None = None,
        queue: str | None = None,
        worker: GivenId | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[AuditRecord]:
        """Return what people and code have done, newest first, to one thing if one is named; pass `cursor` for the next page."""
        ids = {"job": job and read_id(job), "worker": worker and read_id(worker)}
        named = [
            (kind, name) for kind, name in ({"schedule": schedule, "queue": queue} | ids).items() if name
        ]
        if len(named) > 1:
            raise InvalidOption(f"name one thing, not a {' and a '.join(kind for kind, _ in named)}")
        target = Subject(*named[0]).target() if named else None
        most = check_limit(limit)
        before = None if cursor is None else read_cursor(_KIND, cursor)
        found = await self._store().entries(target, limit=most + 1, before=before)
        following = write_cursor(_KIND, found[most - 1].id) if len(found) > most else None
        return Page(map(AuditRecord.from_stored, found[:most]), cursor=following)
