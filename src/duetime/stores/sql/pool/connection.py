"""What we ask of a driver's connections, and of whoever makes them."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from duetime.model.time import Clock, Micros
from duetime.stores.base.timeouts import ServerTimeouts
from duetime.stores.sql.driver import Script
from duetime.stores.sql.pool.errors import DatabaseLabel, ErrorPredicates


class PooledConnection(Protocol):
    """A connection that a pool can keep."""

    def is_closed(self) -> bool:
        """Whether it is of no use any more, as far as can be told without asking the server."""
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
        """Run a text that answers nothing."""
        ...


C = TypeVar("C", bound=PooledConnection)
T = TypeVar("T")


class Connector(Protocol[C]):
    """Makes connections to one database."""

    @property
    def judge(self) -> ErrorPredicates:
        """Tells what errors mean."""
        ...

    @property
    def patience(self) -> ServerTimeouts:
        """How long its server may say nothing."""
        ...

    @property
    def most_tries(self) -> int:
        """How often a script is run that collides with others."""
        ...

    @property
    def pooled(self) -> bool:
        """Whether there is a pooler in between, so that also a single statement needs a transaction."""
        ...

    @property
    def begin(self) -> str:
        """The text that begins a transaction of ours."""
        ...

    @property
    def probe(self) -> str:
        """A text that does nothing but be answered."""
        ...

    @property
    def place(self) -> DatabaseLabel:
        """The database as messages name it."""
        ...

    def transport(self, connection: C, /) -> Any:
        """Return what a connection is made of."""
        ...

    def errors(self) -> AbstractContextManager[None]:
        """Raise what the driver raises as our own errors."""
        ...

    async def connect(self) -> C:
        """Return a connection that is ready for scripts; raise only our own errors."""
        ...

    def play(
        self, connection: C, script: Script[T], clock: Clock | None, within: float | None = None, /
    ) -> Awaitable[T]:
        """Run a script to its end, each statement within a time; with a clock of our own, all of it at one moment."""
        ...

    @property
    def accepts(self) -> str:
        """What callers may give."""
        ...

    @property
    def alchemy(self) -> str:
        """What SQLAlchemy calls the database."""
        ...

    @property
    def how(self) -> str:
        """How they begin a transaction on it."""
        ...

    @property
    def announces(self) -> bool:
        """Whether a commit of theirs can carry an announcement."""
        ...

    def taken(self, tx: object, /) -> C | None:
        """Return a caller's connection as we use it; None for what is none."""
        ...


class LendingConnector(Connector[C], Protocol[C]):
    """One whose connections can be lent to handlers as they are."""

    async def bound(self, connection: C, timeout: Micros, /) -> None:
        """Have the server end what a handler does on this connection when we cannot, and not before."""
        ...

    def was_closed_by_hand(self, connection: C, /) -> bool:
        """Whether the handler has closed the connection that it was lent, which looks like a lost one otherwise."""
        ...

    def handed_out(self, connection: C, /) -> object:
        """Return what a handler gets of a connection."""
        ...

    def carries_hints(self, connection: C, /) -> bool:
        """Whether a statement can wait on that server for what other processes say."""
        ...
