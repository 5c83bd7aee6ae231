"""What a job may carry beside its arguments, mostly nothing; the same for a request, a task and a schedule."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from types import NoneType
from typing import Any, Final, Self

from duetime.errors import InvalidOption
from duetime.model.instants import Micros
from duetime.model.shown import shown

FOREVER: Final = -1
"""A time to live that never ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The seldom used terms of a job."""

    expires: Micros | None = None
    """How long after its due time a job still matters."""
    tags: tuple[str, ...] = ()
    callbacks: str | None = None
    """What to enqueue when the job ends, as JSON that stands for itself."""
    gate: str | None = None
    """The fleet-wide limit the job runs under."""
    result_ttl: Micros | None = None
    """How long the result is kept after success: `None` as long as the record, 0 not at all, or `FOREVER`."""
    failure_ttl: Micros | None = None
    """The same for the error of a job that failed."""

    def to_text(self) -> str | None:
        """Return what a schedule stores, `None` when there is nothing to say."""
        said = {name: value for name, value in asdict(self).items() if value not in (None, ())}
        return json.dumps(said, sort_keys=True) if said else None

    @classmethod
    def from_text(cls, text: str | None) -> Self | Terms:
        """Read what a schedule has stored; terms that only a later version knows are left out.

        Raises `InvalidOption` for anything else, as in a row that was edited by hand.
        """
        if text is None:
            return PLAIN
        try:
            said: dict[str, Any] = {name: value for name, value in json.loads(text).items() if name in _NAMES}
            said["tags"] = tuple(said.get("tags", ()))
            sound = all(isinstance(value, _TYPES[name]) for name, value in said.items())
            if sound and all(isinstance(tag, str) for tag in said["tags"]):
                return cls(**said)
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass
        raise InvalidOption(f"the terms {shown(text)} cannot be read")


_NAMES: Final = frozenset(one.name for one in fields(Terms))
_TYPES: Final = {
    **dict.fromkeys(_NAMES, (int, NoneType)),
    **dict.fromkeys(("callbacks", "gate"), (str, NoneType)),
    "tags": (tuple,),
}
PLAIN: Final = Terms()
"""What most jobs carry: nothing."""


def join_tags(tags: tuple[str, ...]) -> str | None:
    """Write tags so that `|tag|` is found in the text; `None` for no tags."""
    return f"|{'|'.join(tags)}|" if tags else None


def split_tags(text: str | None) -> tuple[str, ...]:
    """Read what `join_tags` wrote."""
    return tuple(text[1:-1].split("|")) if text else ()
