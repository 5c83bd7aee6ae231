"""Audit entries: who did what, and when."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, cast
from uuid import UUID, uuid5

from duetime.model.ids import new_job_id
from duetime.model.text import shown
from duetime.model.time import Instant

ITSELF = "duetime"
"""The author of changes that no one asked for, such as the pause after failures in a row."""

_RELEASES: Final = UUID("1c6d6a2e-8f0b-5d5e-9f58-5f1f3a3b9c11")
DEPLOYMENT: Final = "[deployment]"
"""What the first worker of a release notes; no schedule can have this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Something that is being done; the store adds the time."""

    verb: str
    target: str
    who: str
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """JSON values; for a change: the fields that differ, each with what it was and what it is."""
    id: str = field(default_factory=new_job_id)
    """Rises with time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAuditEntry(AuditEntry):
    """Something that was done."""

    at: Instant


Noted: TypeAlias = Mapping[str, AuditEntry]
"""What is to be noted of each thing that is changed, by its id."""
NOTHING_NOTED: Final[Noted] = MappingProxyType({})


class Subject(NamedTuple):
    """What an entry is about."""

    kind: str
    """`schedule`, `job`, `queue`, `worker`, `copy` or `deployment`."""
    name: str

    def target(self) -> str:
        """Return what is stored: of a schedule its name; what stands in brackets is the name of none."""
        return self.name if self.kind == "schedule" else f"[{self.kind} {self.name}]"

    @classmethod
    def of(cls, target: str) -> Subject:
        """Read what was stored."""
        if not target.startswith("["):
            return cls("schedule", target)
        kind, _, name = target[1:].removesuffix("]").partition(" ")
        return cls(kind, name)


def read_detail(text: str | None) -> Mapping[str, Any]:
    """Return the detail of an entry, or a note that it cannot be read."""
    try:
        detail = json.loads(text or "{}")
    except (ValueError, RecursionError):
        detail = None
    return cast("dict[str, Any]", detail) if isinstance(detail, dict) else {"unreadable": shown(text)}


def deployment(release: str, *, worker: str) -> AuditEntry:
    """Return what the first worker of a release notes; of several, one entry is kept."""
    return AuditEntry(
        verb="deploy",
        target=DEPLOYMENT,
        who=worker,
        detail={"release": release},
        id=uuid5(_RELEASES, release).hex,
    )
