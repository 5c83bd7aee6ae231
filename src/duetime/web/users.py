"""Who asks, and what that person or program may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from duetime.model.stored.credentials import Role
from duetime.model.text import check_choice, check_name
from duetime.scheduler.audit import actor_name

_ORDER: Final = list(Role)
_NAMES: Final = [role.value for role in Role]


@dataclass(frozen=True, slots=True)
class User:
    """A person or a program that was recognised."""

    name: str
    """Kept with each change that it makes."""
    role: Role | str = Role.VIEWER
    queues: frozenset[str] | None = None
    """The queues whose jobs and schedules it may see and touch; `None` for all, and for what belongs to no queue."""

    token: str | None = field(default=None, repr=False)
    """The id of the token that tells who it is, if there is one: what is made for the user ends with it."""

    def __post_init__(self) -> None:
        actor_name(self.name)
        object.__setattr__(self, "role", Role(check_choice(self.role, _NAMES, what="role")))
        if self.queues is not None:
            queues = frozenset(check_name(one, what="queue") for one in self.queues)
            object.__setattr__(self, "queues", queues)

    def may(self, role: Role) -> bool:
        """Whether it has a role, or one above it."""
        return _ORDER.index(Role(self.role)) >= _ORDER.index(role)

    def sees(self, queue: str) -> bool:
        """Whether it may see and touch what is in a queue."""
        return self.queues is None or queue in self.queues


Authenticate: TypeAlias = Callable[[Any], User | Awaitable[User | None] | None]
"""Tells who sends a request, `None` if that is not known."""
