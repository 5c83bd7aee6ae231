"""What the pooled driver asks of a database's connections, and of what makes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

from duetime.model.time import Clock
from duetime.stores.base.timeouts import ServerTimeouts
from duetime.stores.sql.driver import Script
from duetime.stores.sql.pool.errors import DatabaseErrors

T = TypeVar("T")


class PooledConnection(Protocol):
    """A connection that a pool can keep."""

    def is_closed(self) -> bool:
        """Whether it cannot be used any more, as far as can be told without asking the server."""
        ...

    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        ...

    def terminate(self) -> None:
        """Close it at once."""
        ...

    async def close(self, *, timeout: float | None = None) -> None:
        """Close it in order."""
        ...

    async def execute(self, query: str, /) -> object:
        """Run a statement that returns nothing."""
        ...


C = TypeVar("C", bound=PooledConnection)
ConnectionUse: TypeAlias = Literal["verbs", "handlers", "sibling"]
"""Who uses a connection: the verbs of a store, handlers, or a sibling, for all that it does."""


class Connector(ABC, Generic[C]):
    """Makes connections to one database, and runs scripts on them."""

    most_tries: ClassVar[int]
    """How often a script is run that collides with others."""
    probe: ClassVar[str]
    """A statement that does nothing."""
    accepted: ClassVar[str]
    """What callers may give as their transaction."""
    sqlalchemy_name: ClassVar[str]
    """What SQLAlchemy calls the database."""
    how_to_begin: ClassVar[str]
    """How callers begin a transaction."""
    announces: ClassVar[bool]
    """Whether the commit of a caller can carry an announcement."""
    pooled = False
    """Whether there is a pooler in between, so that a single statement needs a transaction as well."""

    def __init__(self, errors: DatabaseErrors, *, timeout: float) -> None:
        self.errors = errors
        self.timeouts = ServerTimeouts(timeout)

    @property
    def begin(self) -> str:
        """The statement that begins a transaction of ours."""
        return "BEGIN"

    @property
    def local_bounds(self) -> str:
        """The text, perhaps empty, that bounds a transaction where the session cannot be trusted with it."""
        return ""

    async def clean(self, connection: C) -> bool:
        """Undo what a handler has left in a session; False if it is better to close the connection."""
        del connection
        return False

    @abstractmethod
    async def connect(self, use: ConnectionUse = "verbs") -> C:
        """Return a connection that is ready for scripts; raise only our own errors."""

    @abstractmethod
    async def play(
        self, connection: C, script: Script[T], clock: Clock | None, within: float | None = None
    ) -> T:
        """Run a script to its end, each statement within a time; with a clock of our own, all of it at one moment."""

    @abstractmethod
    def transport(self, connection: C) -> Any:
        """Return the transport of a connection."""

    @abstractmethod
    def taken(self, tx: object) -> C | None:
        """Return a caller's connection as we use it; None if it is not one."""
